#include "server/request_prefix.h"

#include <fmt/format.h>

namespace kiln {

std::string RequestPrefix(std::string_view request_id) {
  if (request_id.empty()) return {};
  return fmt::format("{}{} ", kRequestPrefixStart, request_id);
}

}  // namespace kiln
