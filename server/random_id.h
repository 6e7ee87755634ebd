#ifndef KILN_SERVER_RANDOM_ID_H_
#define KILN_SERVER_RANDOM_ID_H_

#include <string>

namespace kiln {

// `size` bytes from the kernel's generator.
std::string RandomBytes(int size);

// Lower-case hexadecimal digits, two for each byte.
std::string ToHex(const std::string& bytes);

}  // namespace kiln

#endif  // KILN_SERVER_RANDOM_ID_H_
