#include "jit/compile/element_index.h"

#include <cstdint>

#include "fmt/format.h"

namespace kiln {
namespace {

constexpr std::string_view kAxes[] = {"at.n", "at.c", "at.h", "at.w"};

}  // namespace

std::string IndexOf(const Dims4& dims, const Dims4& domain) {
  if (dims == domain) return "at.i";
  std::string index;
  int64_t stride = 1;
  for (int axis = 3; axis >= 0; --axis) {
    if (dims[axis] == 1) continue;
    std::string term(kAxes[axis]);
    if (stride != 1) term += fmt::format(" * {}", stride);
    index = index.empty() ? term : term + " + " + index;
    stride *= dims[axis];
  }
  return index.empty() ? "0" : index;
}

std::string_view AxisOf(size_t rank, size_t axis) {
  return kAxes[4 - rank + axis];
}

bool IsOfChannel(const std::string& index) {
  return !index.empty() && index.find("at.i") == std::string::npos &&
         index.find("at.h") == std::string::npos &&
         index.find("at.w") == std::string::npos;
}

bool RunsWithW(const std::string& index) {
  return index == "at.w" || index.ends_with(" + at.w");
}

}  // namespace kiln
