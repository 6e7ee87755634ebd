#include "cache/entry_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/cache/scratch_directory.h"

namespace kiln {
namespace {

constexpr char kKeyText[] = "key: 1\ntarget: cpu\nplan:\nrelu(a)\n";

std::string Payload(size_t size) {
  std::string payload(size, '\0');
  for (size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(i * 31);
  return payload;
}

// Exactly 4 KiB.
std::string FourKilobyteEntry() {
  const size_t payload = 4096 - kEntryOverheadBytes - sizeof(kKeyText) + 1;
  return SerializeEntry(TestKey(1), kKeyText, Payload(payload), "kiln 0.1.0");
}

bool IsDamage(const std::string& bytes) {
  return absl::IsDataLoss(ParseEntry(bytes, TestKey(1)).status());
}

TEST(EntryFormatTest, ReadsWhatItWrites) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}}) {
    const CacheEntry entry{TestKey(1), kKeyText, Payload(size), "kiln 0.1.0"};
    const auto parsed = ParseEntry(
        SerializeEntry(entry.key, entry.key_text, entry.payload, entry.writer),
        entry.key);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, entry);
  }
}

TEST(EntryFormatTest, CutsLongWriter) {
  const auto parsed = ParseEntry(
      SerializeEntry(TestKey(1), "", "x", "a writer with a long name"),
      TestKey(1));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->writer, "a writer with a ");
}

// Prevents a change of the format without a new version: entries of older
// daemons would then be read wrongly.
TEST(EntryFormatTest, MatchesTheGoldenOfVersion1) {
  const std::string golden = ReadFile(KILN_TEST_GOLDENS "/entry_v1.kiln");
  EXPECT_EQ(golden,
            SerializeEntry(TestKey(1), kKeyText, Payload(64), "kiln 0.1.0"));
  EXPECT_TRUE(ParseEntry(golden, TestKey(1)).ok());
}

// Prevents serving a file that a crash or a full disk cut short.
TEST(EntryFormatTest, EveryTruncationIsDamage) {
  const std::string bytes = FourKilobyteEntry();
  ASSERT_EQ(bytes.size(), 4096);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(IsDamage(bytes.substr(0, size))) << "cut to " << size;
  }
  EXPECT_TRUE(IsDamage(bytes + '\0'));
}

// Prevents serving what a disk changed.
TEST(EntryFormatTest, EveryBitFlipIsDamage) {
  std::string bytes = FourKilobyteEntry();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      EXPECT_TRUE(IsDamage(bytes)) << "byte " << i << ", bit " << bit;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
    }
  }
  EXPECT_FALSE(IsDamage(bytes));
}

std::string Mutate(std::string bytes, std::mt19937_64* random) {
  const size_t at = (*random)() % bytes.size();
  const size_t length = 1 + (*random)() % 64;
  switch ((*random)() % 5) {
    case 0:  // overwrite
      for (size_t i = at; i < std::min(at + length, bytes.size()); ++i) {
        bytes[i] = static_cast<char>((*random)());
      }
      return bytes;
    case 1:
      return bytes.erase(at, length);
    case 2:
      return bytes.insert(at, length, static_cast<char>((*random)()));
    case 3:  // zero tail, as after a crash without a flush
      return bytes.replace(at, bytes.size() - at, bytes.size() - at, '\0');
    default:  // a block from elsewhere
      return bytes.replace(at, length, bytes, (*random)() % bytes.size(),
                           length);
  }
}

// Prevents a crash of the reader, and bad bytes, on arbitrary damage.
TEST(EntryFormatTest, RandomMutationsAreDamage) {
  const std::string bytes = FourKilobyteEntry();
  std::mt19937_64 random(20240601);
  for (int i = 0; i < 10'000; ++i) {
    const std::string mutated = Mutate(bytes, &random);
    if (mutated != bytes) {
      EXPECT_TRUE(IsDamage(mutated)) << "case " << i;
    }
  }
}

// Prevents sizes near 2^64 from wrapping around into a valid sum.
TEST(EntryFormatTest, OverflowingSizesAreDamage) {
  std::string bytes = FourKilobyteEntry();
  for (const unsigned char high : {0x00, 0x7f, 0xff}) {
    for (size_t i = 12; i < 24; ++i) bytes[i] = static_cast<char>(0xff);
    bytes[23] = static_cast<char>(high);
    EXPECT_TRUE(IsDamage(bytes));
  }
}

// Prevents a kernel from being served for another plan after files were
// swapped, by hand or by a broken file system.
TEST(EntryFormatTest, AnotherKeysEntryIsDamage) {
  const auto parsed = ParseEntry(FourKilobyteEntry(), TestKey(2));
  EXPECT_TRUE(absl::IsDataLoss(parsed.status()));
}

TEST(EntryFormatTest, FutureVersionIsDamageAndSaysSo) {
  std::string bytes = FourKilobyteEntry();
  bytes[8] = 2;
  const auto parsed = ParseEntry(bytes, TestKey(1));
  EXPECT_NE(std::string(parsed.status().message()).find("version (2;"),
            std::string::npos);
}

}  // namespace
}  // namespace kiln
