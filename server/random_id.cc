#include "server/random_id.h"

#include <sys/random.h>

#include <cstdlib>

namespace kiln {

std::string RandomBytes(int size) {
  std::string bytes(size, '\0');
  // Up to 256 bytes come whole or not at all (getrandom(2)).
  if (getrandom(bytes.data(), bytes.size(), 0) != size) std::abort();
  return bytes;
}

std::string ToHex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace kiln
