#include "jit/artifact/digest.h"

#include <gtest/gtest.h>

#include <string>

namespace kiln {
namespace {

// The examples of FIPS 180-4 (NIST, SHA256.pdf), and the empty message.
TEST(Sha256HexTest, MatchesPublishedDigests) {
  EXPECT_EQ(Sha256Hex(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(
      Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256HexTest, CountsZeroBytes) {
  EXPECT_NE(Sha256Hex(std::string(1, '\0')), Sha256Hex(""));
  EXPECT_NE(Sha256Hex(std::string(2, '\0')), Sha256Hex(std::string(1, '\0')));
}

}  // namespace
}  // namespace kiln
