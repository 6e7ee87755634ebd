#include "tests/ptx/lexer.h"

#include <algorithm>
#include <cctype>

namespace kiln::ptx {
namespace {

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         c == '%' || c == '$' || c == '.';
}

// Of the word at `begin`; opcodes contain "::", labels end with ':'.
size_t EndOfWord(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size()) {
    if (IsWordCharacter(text[end])) {
      ++end;
    } else if (text.substr(end, 2) == "::") {
      end += 2;
    } else {
      break;
    }
  }
  return end;
}

// Of the blanks or the comment at `begin`; `begin` if there is neither.
size_t EndOfBlank(std::string_view text, size_t begin) {
  const auto end_behind = [&](std::string_view mark) {
    const size_t found = text.find(mark, begin);
    return found == text.npos ? text.size() : found + mark.size();
  };
  if (text.substr(begin, 2) == "//") return end_behind("\n");
  if (text.substr(begin, 2) == "/*") return end_behind("*/");
  const bool is_space =
      std::isspace(static_cast<unsigned char>(text[begin])) != 0 ||
      text[begin] == '\0';
  return begin + (is_space ? 1 : 0);
}

}  // namespace

std::vector<Token> Tokens(std::string_view text) {
  std::vector<Token> tokens;
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    size_t end = EndOfBlank(text, at);
    if (end == at) {
      if (IsWordCharacter(text[at])) {
        end = EndOfWord(text, at);
      } else if (text[at] == '"') {
        end = std::min(text.find('"', at + 1), text.size() - 1) + 1;
      } else {
        end = at + 1;
      }
      tokens.push_back({text.substr(at, end - at), line});
    }
    line += static_cast<int>(
        std::count(text.begin() + at, text.begin() + end, '\n'));
    at = end;
  }
  tokens.push_back({{}, line});
  return tokens;
}

}  // namespace kiln::ptx
