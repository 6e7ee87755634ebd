#include "client/connect_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace kiln {
namespace {

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string DefaultSocket() {
  const std::string given = FromEnvironment("KILN_SOCKET");
  if (!given.empty()) return given;
  const std::string runtime = FromEnvironment("XDG_RUNTIME_DIR");
  if (!runtime.empty()) return runtime + "/kiln/kilnd.sock";
  return fmt::format("/tmp/kiln-{}/kilnd.sock", geteuid());
}

std::string DefaultLogFile() {
  const std::string state = FromEnvironment("XDG_STATE_HOME");
  if (!state.empty()) return state + "/kiln/kilnd.log";
  const std::string home = FromEnvironment("HOME");
  if (!home.empty()) return home + "/.local/state/kiln/kilnd.log";
  return fmt::format("/tmp/kiln-{}/kilnd.log", geteuid());
}

}  // namespace

ConnectOptions DefaultConnectOptions() {
  ConnectOptions options;
  options.socket = DefaultSocket();
  options.log_file = DefaultLogFile();
  return options;
}

}  // namespace kiln
