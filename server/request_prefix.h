#ifndef KILN_SERVER_REQUEST_PREFIX_H_
#define KILN_SERVER_REQUEST_PREFIX_H_

#include <string>
#include <string_view>

namespace kiln {

// "request=<id> ", the prefix of every log line of a call; empty for an empty
// id: the line belongs to no call.
std::string RequestPrefix(std::string_view request_id);

// How such a prefix starts.
inline constexpr std::string_view kRequestPrefixStart = "request=";

}  // namespace kiln

#endif  // KILN_SERVER_REQUEST_PREFIX_H_
