#include "server/status_converter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/plan/errors.h"
#include "server/cache_key.h"
#include "server/errors.h"
#include "server/miss_explanation.h"
#include "server/plan_summary.h"

namespace kiln {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(StatusConverterTest, EveryCodeKeepsItsNumber) {
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status =
        ToGrpc(absl::Status(static_cast<absl::StatusCode>(code), "why"));
    EXPECT_EQ(static_cast<int>(status.error_code()), code);
    EXPECT_EQ(status.error_message(), "why");
  }
}

// Prevents trailers that gRPC clients refuse (8 KiB), which would replace our
// error by one of gRPC's.
TEST(StatusConverterTest, CutsLongMessages) {
  const grpc::Status status = ToGrpc(
      absl::InternalError("first " + std::string(100'000, 'x') + "last"));
  EXPECT_LE(status.error_message().size(), 2048u);
  EXPECT_THAT(status.error_message(), StartsWith("first"));
  EXPECT_THAT(status.error_message(), EndsWith("last"));
}

TEST(StatusConverterTest, DetailCarriesEveryField) {
  ErrorDetail detail{"ops[3]", "-1", "1 to 4", "fix it", "log", "source"};
  const v1::ErrorDetail message = DetailToProto(
      WithDetail(absl::InternalError("m"), detail), "0123456789abcdef", 4096);
  EXPECT_EQ(message.field(), "ops[3]");
  EXPECT_EQ(message.value(), "-1");
  EXPECT_EQ(message.limit(), "1 to 4");
  EXPECT_EQ(message.hint(), "fix it");
  EXPECT_EQ(message.compile_log(), "log");
  EXPECT_EQ(message.generated_source(), "source");
  EXPECT_EQ(message.request_id(), "0123456789abcdef");
}

TEST(StatusConverterTest, DetailFitsTheLimit) {
  ErrorDetail detail;
  detail.field = std::string(10'000, 'f');
  detail.compile_log = "first error " + std::string(100'000, 'l') + " 9 errors";
  detail.generated_source = std::string(50'000, 's');
  const absl::Status status = WithDetail(absl::InternalError("m"), detail);
  for (const size_t limit : {4096u, 20'000u, 262'144u}) {
    const v1::ErrorDetail message = DetailToProto(status, "id", limit);
    // Tags and lengths come on top.
    EXPECT_LE(message.ByteSizeLong(), limit + 32) << limit;
    EXPECT_THAT(message.compile_log(), StartsWith("first error"));
    EXPECT_THAT(message.compile_log(), EndsWith("9 errors"));
  }
  EXPECT_EQ(DetailToProto(status, "id", 4096).generated_source(), "");
  EXPECT_NE(DetailToProto(status, "id", 262'144).generated_source(), "");
}

// Prevents a log with bytes that are no UTF-8 from making the whole detail
// unserialisable.
TEST(StatusConverterTest, DetailIsText) {
  ErrorDetail detail;
  detail.compile_log =
      "a\xff\x01"
      "b\n";
  const v1::ErrorDetail message =
      DetailToProto(WithDetail(absl::InternalError("m"), detail), "id", 4096);
  EXPECT_EQ(message.compile_log(), "a??b\n");
}

std::vector<DiskCache::EntryInfo> Entries() {
  DiskCache::EntryInfo first;
  first.key = "aaaaaa" + std::string(58, '0');
  first.key_text =
      "key: 1\ntarget: sm_90a/132\ntoolchain: t1\nplan:\ngrade=fp32\n"
      "op0.kind=conv2d\nop1.kind=tanh\n";
  DiskCache::EntryInfo second = first;
  second.key = "aaaaab" + std::string(58, '0');
  second.key_text = "key: 1\ntarget: cpu\ntoolchain: \nplan:\nop0.kind=relu\n";
  return {first, second};
}

TEST(CacheKeyTest, FindsByKeyAndByUniquePrefix) {
  const auto entries = Entries();
  EXPECT_EQ(FindEntry(entries[0].key, entries)->key, entries[0].key);
  EXPECT_EQ(FindEntry("aaaaab", entries)->key, entries[1].key);
  EXPECT_EQ(FindEntry("bbbbbb", entries).status().code(),
            absl::StatusCode::kNotFound);
  for (const std::string& bad :
       {std::string(), std::string("aaaaa"), std::string("AAAAAA"),
        std::string("zzzzzz"), std::string(65, 'a')}) {
    EXPECT_EQ(FindEntry(bad, entries).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
  EXPECT_EQ(FindEntry("aaaaa", {entries[0]}).status().code(),
            absl::StatusCode::kInvalidArgument);
  auto twins = entries;
  twins[1].key = "aaaaaa1" + std::string(57, '0');
  EXPECT_EQ(FindEntry("aaaaaa", twins).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CacheKeyTest, ReadsFieldsOfKeyTexts) {
  const auto entries = Entries();
  EXPECT_EQ(KeyTextField(entries[0].key_text, "target"), "sm_90a/132");
  EXPECT_EQ(KeyTextField(entries[0].key_text, "grade"), "");
  EXPECT_EQ(KeyTextField("key: 1\nplan:\ntarget: cpu\n", "target"), "");
  EXPECT_EQ(SummarizeKeyText(entries[0].key_text), "conv2d tanh");
  EXPECT_EQ(SummarizeKeyText(""), "");
}

TEST(CacheKeyTest, OnlyToolchainMustBeTheOnlyOne) {
  auto entries = Entries();
  EXPECT_EQ(OnlyToolchain({}), "");
  EXPECT_EQ(OnlyToolchain(entries), "t1");
  entries.push_back(entries[0]);
  entries[2].key_text = "target: sm_80/108\ntoolchain: t2\nplan:\n";
  EXPECT_EQ(OnlyToolchain(entries), "");
}

TEST(MissExplanationTest, NamesWhatDiffersFromTheNearestEntry) {
  const auto entries = Entries();
  std::string wanted = entries[0].key_text;
  wanted.replace(wanted.find("132"), 3, "114");
  const MissExplanation miss = ExplainMiss(wanted, {entries[1], entries[0]});
  EXPECT_EQ(miss.nearest_key, entries[0].key);
  EXPECT_THAT(ToText(miss), HasSubstr("target (sm_90a/114, not sm_90a/132)"));
  EXPECT_EQ(ToText(ExplainMiss(wanted, {})), "the cache is empty");
}

}  // namespace
}  // namespace kiln
