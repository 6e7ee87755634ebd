#ifndef KILN_JIT_PLAN_TOKEN_READER_H_
#define KILN_JIT_PLAN_TOKEN_READER_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/plan/op.h"
#include "jit/plan/plan_lexer.h"
#include "jit/plan/tensor_desc.h"

namespace kiln {

// "inf", "nan", "none", "true" and so on, which name no value.
bool IsReservedWord(std::string_view name);

// Reads the tokens of a plan text in order, and the literals that stand in
// it. Errors: INVALID_ARGUMENT with line and column.
class TokenReader {
 public:
  // `tokens` ends with kEnd.
  explicit TokenReader(std::vector<Token> tokens)
      : tokens_(std::move(tokens)) {}

  // The next token, or one of those behind it; kEnd repeats.
  const Token& Peek(size_t ahead = 0) const;
  const Token& Next();

  bool NextIs(std::string_view punct, size_t ahead = 0) const;
  // Skips `punct` if it is next.
  bool Skip(std::string_view punct);
  absl::Status Expect(std::string_view punct);
  absl::StatusOr<Token> ExpectName(std::string_view what);
  absl::Status ExpectEndOfLine();

  // The next token starts a number: digits, inf or nan.
  bool NextIsNumber() const;

  // Each reads one literal into `*out`.
  absl::Status Read(bool* out);
  absl::Status Read(int64_t* out);
  absl::Status Read(float* out);
  absl::Status Read(Pair* out);  // 2, [2,1] or (2,1)
  absl::Status Read(Dims* out);  // 1, [1,2], (1,2), [] or none
  absl::Status Read(DataType* out);
  absl::Status Read(GeluApproximate* out);

  // "none", or what T reads.
  template <typename T>
  absl::Status Read(std::optional<T>* out) {
    if (SkipNone()) {
      out->reset();
      return absl::OkStatus();
    }
    return Read(&out->emplace());
  }

  // Skips "none" if it is next.
  bool SkipNone();

  // "[2,3]" behind a type; "[]" is a scalar.
  absl::Status ReadExtents(Dims* out);

 private:
  absl::Status ReadList(std::string_view close, Dims* out);

  std::vector<Token> tokens_;
  size_t position_ = 0;
};

}  // namespace kiln

#endif  // KILN_JIT_PLAN_TOKEN_READER_H_
