#include "jit/plan/plan_lexer.h"

#include <fmt/format.h>

#include <string>

#include "jit/plan/errors.h"

namespace kiln {
namespace {

constexpr size_t kMaxShownBytes = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool IsNameByte(char c) {
  return IsLetter(c) || IsDigit(c) || c == '.' || c == '-';
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool IsHex(std::string_view number) {
  if (!number.empty() && (number[0] == '-' || number[0] == '+')) {
    number.remove_prefix(1);
  }
  return number.substr(0, 2) == "0x" || number.substr(0, 2) == "0X";
}

// `number` may go on with a sign: behind the exponent's letter.
bool TakesSign(std::string_view number) {
  const char last = number.back();
  if (IsHex(number)) return last == 'p' || last == 'P';
  return last == 'e' || last == 'E';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (position_ < text_.size()) {
      if (absl::Status s = Step(text_[position_]); !s.ok()) return s;
    }
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::kNewline) {
      tokens_.push_back(Take(TokenKind::kNewline, 0));
    }
    tokens_.push_back(Take(TokenKind::kEnd, 0));
    return std::move(tokens_);
  }

 private:
  absl::Status Step(char c) {
    if (c == '\n') {
      EndLine();
    } else if (IsBlank(c)) {
      ++position_;
    } else if (c == '#') {
      while (position_ < text_.size() && text_[position_] != '\n') ++position_;
    } else if (IsLetter(c)) {
      tokens_.push_back(Take(TokenKind::kName, NameSize()));
    } else if (IsDigit(c) || c == '.' || c == '-' || c == '+') {
      tokens_.push_back(Take(TokenKind::kNumber, NumberSize()));
    } else {
      return Punct(c);
    }
    return absl::OkStatus();
  }

  absl::Status Punct(char c) {
    if (std::string_view("=()[],:").find(c) == std::string_view::npos) {
      return TextError(
          Take(TokenKind::kPunct, 1), "no token starts here",
          fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c)),
          "a name, a number or one of = ( ) [ ] , : #");
    }
    if (c == '(' || c == '[') ++depth_;
    if ((c == ')' || c == ']') && depth_ > 0) --depth_;
    tokens_.push_back(Take(TokenKind::kPunct, 1));
    return absl::OkStatus();
  }

  void EndLine() {
    const bool ends_statement = depth_ == 0 && !tokens_.empty() &&
                                tokens_.back().kind != TokenKind::kNewline;
    if (ends_statement) tokens_.push_back(Take(TokenKind::kNewline, 0));
    ++position_;
    ++line_;
    line_start_ = position_;
  }

  size_t NameSize() const {
    size_t end = position_;
    while (end < text_.size() && IsNameByte(text_[end])) ++end;
    return end - position_;
  }

  size_t NumberSize() const {
    size_t end = position_ + 1;
    while (end < text_.size()) {
      const char c = text_[end];
      const bool sign = (c == '-' || c == '+') &&
                        TakesSign(text_.substr(position_, end - position_));
      if (!sign && !IsLetter(c) && !IsDigit(c) && c != '.') break;
      ++end;
    }
    return end - position_;
  }

  Token Take(TokenKind kind, size_t size) {
    const Token token{kind, text_.substr(position_, size), line_,
                      static_cast<int>(position_ - line_start_) + 1};
    position_ += size;
    return token;
  }

  std::string_view text_;
  size_t position_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  int depth_ = 0;  // of open brackets
  std::vector<Token> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> SplitPlanText(std::string_view text) {
  return Lexer(text).Run();
}

absl::Status TextError(const Token& at, std::string_view problem,
                       std::string_view value, std::string_view limit) {
  return InvalidField(fmt::format("line {}, column {}", at.line, at.column),
                      problem, value, limit);
}

std::string Describe(const Token& token) {
  if (token.kind == TokenKind::kNewline) return "the end of the line";
  if (token.kind == TokenKind::kEnd) return "the end of the text";
  if (token.text.size() <= kMaxShownBytes) {
    return fmt::format("'{}'", token.text);
  }
  return fmt::format("'{}...'", token.text.substr(0, kMaxShownBytes));
}

}  // namespace kiln
