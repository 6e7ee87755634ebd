#ifndef KILN_JIT_PLAN_PLAN_LEXER_H_
#define KILN_JIT_PLAN_PLAN_LEXER_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln {

enum class TokenKind {
  kName,     // [A-Za-z_][A-Za-z0-9_.-]*, keywords included
  kNumber,   // a sign, digit or point and what follows it; not yet checked
  kPunct,    // one of = ( ) [ ] , :
  kNewline,  // end of a line that is not inside brackets
  kEnd,      // once, last
};

// A piece of plan text. `text` points into the text that was split.
struct Token {
  TokenKind kind;
  std::string_view text;
  int line;    // from 1
  int column;  // in bytes, from 1
};

// Splits plan text into tokens; comments and blanks are gone. Errors:
// INVALID_ARGUMENT with line and column for a character that starts no token.
absl::StatusOr<std::vector<Token>> SplitPlanText(std::string_view text);

// INVALID_ARGUMENT "line L, column C: <problem> (got <value>, allowed:
// <limit>)".
absl::Status TextError(const Token& at, std::string_view problem,
                       std::string_view value, std::string_view limit);

// How messages show a token: "'conv2d'", "the end of the line".
std::string Describe(const Token& token);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_PLAN_LEXER_H_
