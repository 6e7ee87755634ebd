#ifndef KILN_JIT_ARTIFACT_DIGEST_H_
#define KILN_JIT_ARTIFACT_DIGEST_H_

#include <string>
#include <string_view>

namespace kiln {

// SHA-256 (FIPS 180-4) of `bytes` as 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

}  // namespace kiln

#endif  // KILN_JIT_ARTIFACT_DIGEST_H_
