#include "jit/plan/token_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace kiln {
namespace {

// The f32 that `text` spells; nullopt if it spells none. Sets `*out_of_range`
// if it spells a number beyond f32.
std::optional<float> ParseFloat(std::string_view text, bool* out_of_range) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  const bool hex = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  if (hex) text.remove_prefix(2);
  if (text.empty() || text[0] == '-' || text[0] == '+') return std::nullopt;
  // std::from_chars takes inf and nan for hexadecimal numbers, too.
  if (hex && text.find_first_of("iInN") == 0) return std::nullopt;

  float value = 0.0f;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(
      text.data(), end, value,
      hex ? std::chars_format::hex : std::chars_format::general);
  *out_of_range = error == std::errc::result_out_of_range;
  if (error != std::errc() || rest != end) return std::nullopt;
  return negative ? -value : value;
}

}  // namespace

bool IsReservedWord(std::string_view name) {
  constexpr std::string_view kWords[] = {"inf",  "nan",   "none", "None",
                                         "true", "false", "True", "False"};
  return std::find(std::begin(kWords), std::end(kWords), name) !=
         std::end(kWords);
}

const Token& TokenReader::Peek(size_t ahead) const {
  return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
}

const Token& TokenReader::Next() {
  const Token& token = Peek();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool TokenReader::NextIs(std::string_view punct, size_t ahead) const {
  const Token& token = Peek(ahead);
  return token.kind == TokenKind::kPunct && token.text == punct;
}

bool TokenReader::Skip(std::string_view punct) {
  if (!NextIs(punct)) return false;
  Next();
  return true;
}

absl::Status TokenReader::Expect(std::string_view punct) {
  if (Skip(punct)) return absl::OkStatus();
  return TextError(Peek(), "unexpected token", Describe(Peek()),
                   fmt::format("'{}'", punct));
}

absl::StatusOr<Token> TokenReader::ExpectName(std::string_view what) {
  if (Peek().kind == TokenKind::kName) return Next();
  return TextError(Peek(), "unexpected token", Describe(Peek()), what);
}

absl::Status TokenReader::ExpectEndOfLine() {
  if (Peek().kind == TokenKind::kEnd) return absl::OkStatus();
  if (Peek().kind == TokenKind::kNewline) {
    Next();
    return absl::OkStatus();
  }
  return TextError(Peek(), "unexpected token", Describe(Peek()),
                   "the end of the line");
}

bool TokenReader::NextIsNumber() const {
  const Token& token = Peek();
  return token.kind == TokenKind::kNumber ||
         (token.kind == TokenKind::kName &&
          (token.text == "inf" || token.text == "nan"));
}

absl::Status TokenReader::Read(bool* out) {
  const Token& token = Peek();
  const bool yes = token.text == "true" || token.text == "True";
  const bool no = token.text == "false" || token.text == "False";
  if (!yes && !no) {
    return TextError(token, "unexpected token", Describe(token),
                     "true or false");
  }
  *out = yes;
  Next();
  return absl::OkStatus();
}

absl::Status TokenReader::Read(int64_t* out) {
  const Token& token = Peek();
  std::string_view text = token.text;
  if (text.substr(0, 1) == "+") text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *out);
  if (token.kind != TokenKind::kNumber || error != std::errc() || rest != end) {
    return TextError(token, "unexpected token", Describe(token),
                     "a 64-bit integer");
  }
  Next();
  return absl::OkStatus();
}

absl::Status TokenReader::Read(float* out) {
  const Token& token = Peek();
  bool out_of_range = false;
  std::optional<float> value;
  if (NextIsNumber()) value = ParseFloat(token.text, &out_of_range);
  if (!value.has_value()) {
    return TextError(
        token, out_of_range ? "does not fit f32" : "unexpected token",
        Describe(token),
        out_of_range ? "a number within the range of f32" : "a number");
  }
  *out = *value;
  Next();
  return absl::OkStatus();
}

absl::Status TokenReader::ReadList(std::string_view close, Dims* out) {
  out->clear();
  while (!NextIs(close)) {
    int64_t entry = 0;
    if (absl::Status s = Read(&entry); !s.ok()) return s;
    out->push_back(entry);
    if (!Skip(",")) break;
  }
  return Expect(close);
}

absl::Status TokenReader::Read(Dims* out) {
  if (SkipNone()) {
    out->clear();
    return absl::OkStatus();
  }
  if (Skip("[")) return ReadList("]", out);
  if (Skip("(")) return ReadList(")", out);
  int64_t entry = 0;
  if (absl::Status s = Read(&entry); !s.ok()) return s;
  *out = {entry};
  return absl::OkStatus();
}

absl::Status TokenReader::Read(Pair* out) {
  const Token start = Peek();
  const bool list = NextIs("[") || NextIs("(");
  Dims entries;
  if (absl::Status s = Read(&entries); !s.ok()) return s;
  if (entries.empty() || entries.size() > 2) {
    return TextError(start, "has the wrong number of entries",
                     list ? fmt::format("{}", entries.size()) : Describe(start),
                     "one number, or two for height and width");
  }
  *out = {entries.front(), entries.back()};
  return absl::OkStatus();
}

absl::Status TokenReader::Read(DataType* out) {
  const std::optional<DataType> type = ParseDataType(Peek().text);
  if (!type.has_value()) {
    return TextError(Peek(), "is not a data type", Describe(Peek()),
                     "f32, f16 or bf16");
  }
  *out = *type;
  Next();
  return absl::OkStatus();
}

absl::Status TokenReader::Read(GeluApproximate* out) {
  const Token& token = Peek();
  if (token.text != "none" && token.text != "tanh") {
    return TextError(token, "is not an approximation of gelu", Describe(token),
                     "none or tanh");
  }
  *out = token.text == "tanh" ? GeluApproximate::kTanh : GeluApproximate::kNone;
  Next();
  return absl::OkStatus();
}

bool TokenReader::SkipNone() {
  const bool none = Peek().kind == TokenKind::kName &&
                    (Peek().text == "none" || Peek().text == "None");
  if (none) Next();
  return none;
}

absl::Status TokenReader::ReadExtents(Dims* out) {
  if (absl::Status s = Expect("["); !s.ok()) return s;
  return ReadList("]", out);
}

}  // namespace kiln
