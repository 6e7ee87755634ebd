#ifndef KILN_CACHE_DIGEST_H_
#define KILN_CACHE_DIGEST_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln {

inline constexpr size_t kSha256Bytes = 32;

// SHA-256 (FIPS 180-4) of `data`, as kSha256Bytes raw bytes.
std::string Sha256(std::string_view data);

// Two lower-case hexadecimal digits per byte.
std::string HexDigits(std::string_view bytes);

// True for what the cache takes as a key: 64 lower-case hexadecimal digits.
// Nothing else may become a part of a path.
bool IsCacheKey(std::string_view text);

}  // namespace kiln

#endif  // KILN_CACHE_DIGEST_H_
