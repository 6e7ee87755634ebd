#include "cache/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>

namespace kiln {

std::string Sha256(std::string_view data) {
  std::string digest(kSha256Bytes, '\0');
  unsigned int size = 0;
  const int ok = EVP_Digest(data.data(), data.size(),
                            reinterpret_cast<unsigned char*>(digest.data()),
                            &size, EVP_sha256(), nullptr);
  if (ok != 1 || size != kSha256Bytes) std::abort();
  return digest;
}

std::string HexDigits(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool IsCacheKey(std::string_view text) {
  return text.size() == 2 * kSha256Bytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace kiln
