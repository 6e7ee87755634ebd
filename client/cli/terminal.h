#ifndef KILN_CLIENT_CLI_TERMINAL_H_
#define KILN_CLIENT_CLI_TERMINAL_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kiln::cli {

using Json = nlohmann::ordered_json;

enum class Color { kAuto, kAlways, kNever };

// Where a command's words go: data to standard output, everything said to
// people to standard error.
class Terminal {
 public:
  struct Options {
    bool json = false;
    bool quiet = false;  // errors only
    int verbosity = 0;
    Color color = Color::kAuto;
    bool no_color = false;  // NO_COLOR is set
  };

  explicit Terminal(const Options& options);

  bool json() const { return options_.json; }
  bool verbose() const { return options_.verbosity > 0; }
  // Standard error is a terminal, and progress may be drawn on it.
  bool draws_progress() const;

  // Data for people, unless JSON was asked for.
  void Print(std::string_view text) const;
  // Data for programs, if JSON was asked for. `schema` is "kiln.info/1".
  void PrintJson(std::string_view schema, const Json& body) const;
  // A remark to a person, unless quiet.
  void Note(std::string_view text) const;
  // That one of several parts failed, also when quiet.
  void Failed(std::string_view text) const;
  // What failed, why and what to do; with JSON also as kiln.error/1.
  void Error(const absl::Status& status) const;

  enum class Style { kGood, kBad, kDoubtful, kFaint };
  std::string Styled(Style style, std::string_view text) const;

 private:
  bool Colored(int fd) const;
  Options options_;
};

// {"code", "message"} and, where they apply, "field", "value", "limit",
// "hint", "compile_log", "generated_source".
Json ErrorJson(const absl::Status& status);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_TERMINAL_H_
