#ifndef KILN_TESTS_CACHE_TEST_PAYLOAD_H_
#define KILN_TESTS_CACHE_TEST_PAYLOAD_H_

#include <string>

#include "cache/digest.h"

namespace kiln {

// About 20 KB that depend on the number in every part.
inline std::string TestPayload(int number) {
  const std::string block = Sha256("payload " + std::to_string(number));
  std::string payload;
  for (int i = 0; i < 600 + number % 50; ++i) payload += block;
  return payload;
}

}  // namespace kiln

#endif  // KILN_TESTS_CACHE_TEST_PAYLOAD_H_
