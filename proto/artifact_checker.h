#ifndef KILN_PROTO_ARTIFACT_CHECKER_H_
#define KILN_PROTO_ARTIFACT_CHECKER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kiln {

// Remembers the first thing that is wrong with a message while it is read.
// Reading goes on behind an error and its result is then thrown away, so a
// reader of a field is one line. Holds one status; not thread-safe.
class ArtifactChecker {
 public:
  const absl::Status& status() const { return status_; }

  // Takes over `status`, whose field is below `path`, if it is an error.
  void Adopt(const std::string& path, const absl::Status& status);

  // INVALID_ARGUMENT unless `ok`.
  void Require(bool ok, const std::string& path, std::string_view problem,
               std::string_view value, std::string_view limit);

  // `value`, which must lie in [min, max]; `min` if it does not.
  int64_t Within(const std::string& path, int64_t value, int64_t min,
                 int64_t max);

  // `value`, which must not be negative; 0 if it is.
  int64_t Size(const std::string& path, int64_t value);

  // `index`, which must be one of `count`, whether it is or not.
  int Index(const std::string& path, int index, int count);

  // `number` of an enum whose values are 1 to `last`, as one. INVALID_ARGUMENT
  // for 0, which is "unspecified"; UNIMPLEMENTED for any other.
  template <typename Enum>
  Enum Choice(const std::string& path, int number, Enum last) {
    CheckChoice(path, number, static_cast<int>(last));
    return static_cast<Enum>(number);
  }

 private:
  void CheckChoice(const std::string& path, int number, int last);

  absl::Status status_;
};

}  // namespace kiln

#endif  // KILN_PROTO_ARTIFACT_CHECKER_H_
