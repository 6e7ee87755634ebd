#include "proto/known_fields.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <vector>

#include "jit/plan/errors.h"

namespace kiln {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// `shown` is the path of `message`; `prefix` what its fields' paths begin with.
absl::Status Check(const Message& message, const std::string& shown,
                   const std::string& prefix) {
  const Reflection& reflection = *message.GetReflection();
  const auto& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) {
    return UnknownField(
        shown, "has a field that this build does not know",
        fmt::format("field {}", unknown.field(0).number()),
        fmt::format("the fields of {}", message.GetDescriptor()->full_name()));
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string path = prefix + field->name();
    const int count =
        field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const bool one = !field->is_repeated();
      const Message& child =
          one ? reflection.GetMessage(message, field)
              : reflection.GetRepeatedMessage(message, field, i);
      const std::string at = one ? path : fmt::format("{}[{}]", path, i);
      if (auto s = Check(child, at, at + "."); !s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckKnownFields(const Message& message, const std::string& root) {
  return Check(message, root, "");
}

}  // namespace kiln
