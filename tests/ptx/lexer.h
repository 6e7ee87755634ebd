#ifndef KILN_TESTS_PTX_LEXER_H_
#define KILN_TESTS_PTX_LEXER_H_

#include <string>
#include <string_view>
#include <vector>

namespace kiln::ptx {

// A name, opcode, directive or number, a text in quotes, or one character.
struct Token {
  std::string_view text;
  int line = 0;  // from 1
};

// Without comments; a token without text is the end. Tokens view `text`.
std::vector<Token> Tokens(std::string_view text);

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_LEXER_H_
