#include "jit/artifact/digest.h"

#include <openssl/evp.h>

#include <array>
#include <cstdlib>

namespace kiln {

std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, 32> digest;
  // Fails only when the library has no SHA-256 or no memory.
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr,
                 EVP_sha256(), nullptr) != 1) {
    std::abort();
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace kiln
