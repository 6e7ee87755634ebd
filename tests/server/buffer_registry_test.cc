#include "server/buffer_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "jit/plan/errors.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

struct RangeCase {
  int64_t offset_bytes, size_bytes, memory_bytes;
  int64_t expected;  // 0: refused
};

// Prevents a range that wraps around or leaves the client's memory.
TEST(ResolveRangeTest, AcceptsExactlyWhatIsInside) {
  const RangeCase cases[] = {
      {0, 0, 4096, 4096},     {0, 4096, 4096, 4096}, {0, 4097, 4096, 0},
      {1, 0, 4096, 4095},     {4095, 0, 4096, 1},    {4095, 1, 4096, 1},
      {4095, 2, 4096, 0},     {4096, 0, 4096, 0},    {4097, 0, 4096, 0},
      {-1, 0, 4096, 0},       {0, -1, 4096, 0},      {kMin, 0, 4096, 0},
      {0, kMin, 4096, 0},     {kMax, 0, 4096, 0},    {0, kMax, 4096, 0},
      {kMax, kMax, 4096, 0},  {1, kMax, kMax, 0},    {0, kMax, kMax, kMax},
      {kMax - 1, 0, kMax, 1}, {0, 0, 0, 0},          {0, 1, 0, 0},
  };
  for (const RangeCase& c : cases) {
    const absl::StatusOr<int64_t> size =
        ResolveRange(c.offset_bytes, c.size_bytes, c.memory_bytes);
    EXPECT_EQ(size.ok() ? *size : 0, c.expected)
        << c.offset_bytes << " " << c.size_bytes << " " << c.memory_bytes;
  }
}

Slot MakeSlot(SlotRole role, int64_t min_bytes) {
  Slot slot;
  slot.role = role;
  slot.min_bytes = min_bytes;
  slot.align = 16;
  return slot;
}

// One buffer of 256 bytes, 64 bytes into memory 5, and two slots of 64 bytes.
class BufferRegistryTest : public ::testing::Test {
 protected:
  BufferRegistryTest() { buffer_ = *Add("cpu", 5, "memory-a", 64, 256); }

  absl::StatusOr<std::string> Add(const std::string& device, uint64_t memory,
                                  const std::string& identity, int64_t offset,
                                  int64_t size) {
    return registry_.Add({device, memory, identity, offset, size});
  }
  absl::StatusOr<BufferRegistry::Bound> Bind(
      std::vector<BufferRegistry::Binding> bindings) {
    return registry_.Bind("cpu", slots_, bindings);
  }
  absl::StatusCode BindCode(std::vector<BufferRegistry::Binding> bindings) {
    return Bind(std::move(bindings)).status().code();
  }

  BufferRegistry registry_{8};
  std::vector<Slot> slots_ = {MakeSlot(SlotRole::kInput, 64),
                              MakeSlot(SlotRole::kOutput, 64)};
  std::string buffer_;
};

TEST_F(BufferRegistryTest, BindsOffsetsOfTheMemory) {
  const auto bound = Bind({{1, buffer_, 128}, {0, buffer_, 0}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->slots[0].memory, 5u);
  EXPECT_EQ(bound->slots[0].offset_bytes, 64);
  EXPECT_EQ(bound->slots[1].offset_bytes, 192);
}

// Prevents out-of-bounds reads and writes, overflowing offsets included.
TEST_F(BufferRegistryTest, ChecksRangesAtTheirBounds) {
  for (const int64_t good : {64, 112, 128, 192}) {
    EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, buffer_, good}}),
              absl::StatusCode::kOk)
        << good;
  }
  // Elsewhere, so that no overlap hides what is out of bounds.
  const std::string other = *Add("cpu", 6, "memory-b", 0, 64);
  for (const int64_t bad :
       {int64_t{193}, int64_t{208}, int64_t{256}, int64_t{-1}, int64_t{-16},
        int64_t{-64}, kMin, kMax, kMax - 63, kMax - 64, kMax - 15}) {
    const auto bound = Bind({{0, other, 0}, {1, buffer_, bad}});
    EXPECT_EQ(bound.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(DetailOf(bound.status()).field, "bindings[1].offset_bytes");
  }
}

TEST_F(BufferRegistryTest, RefusesMisalignedAddresses) {
  for (const int64_t bad : {65, 72, 120, 127, 191}) {
    EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, buffer_, bad}}),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
  // The buffer's own place in the memory counts.
  const std::string odd = *Add("cpu", 6, "memory-b", 8, 256);
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, odd, 0}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, odd, 8}}), absl::StatusCode::kOk);
}

// Prevents an output that is written while it is read.
TEST_F(BufferRegistryTest, RefusesOverlapWithOutputs) {
  for (const int64_t offset : {0, 16, 48}) {
    EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, buffer_, offset}}),
              absl::StatusCode::kInvalidArgument)
        << offset;
  }
  // The same memory registered twice is one memory.
  const std::string again = *Add("cpu", 9, "memory-a", 64, 256);
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, again, 48}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, again, 64}}), absl::StatusCode::kOk);
}

TEST_F(BufferRegistryTest, AllowsOverlapOfInputs) {
  slots_ = {MakeSlot(SlotRole::kInput, 64), MakeSlot(SlotRole::kParameter, 64)};
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, buffer_, 0}}),
            absl::StatusCode::kOk);
}

TEST_F(BufferRegistryTest, WantsEachSlotOnce) {
  const BufferRegistry::Binding first = {0, buffer_, 0};
  const BufferRegistry::Binding second = {1, buffer_, 64};
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(BindCode({}), invalid);
  EXPECT_EQ(BindCode({first}), invalid);
  EXPECT_EQ(BindCode({first, first}), invalid);
  EXPECT_EQ(BindCode({first, second, second}), invalid);
  EXPECT_EQ(BindCode({first, {2, buffer_, 64}}), invalid);
  EXPECT_EQ(BindCode({first, {-1, buffer_, 64}}), invalid);
  EXPECT_EQ(BindCode({first, {std::numeric_limits<int>::min(), buffer_, 64}}),
            invalid);
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {0, buffer_, 0}, {1, buffer_, 64}}),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(BufferRegistryTest, RefusesUnknownBuffersAndOtherDevices) {
  const auto precondition = absl::StatusCode::kFailedPrecondition;
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, "", 0}}), precondition);
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, "no such buffer", 0}}),
            precondition);
  const std::string gpu = *Add("cuda:0", 1, "memory-c", 0, 256);
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, gpu, 0}}), precondition);
}

// Prevents memory from being closed under a running kernel.
TEST_F(BufferRegistryTest, RemoveWaitsForLeases) {
  const auto first = Bind({{0, buffer_, 0}, {1, buffer_, 64}});
  const auto second = Bind({{0, buffer_, 0}, {1, buffer_, 64}});
  bool answered = false;
  const auto removed = registry_.Remove(buffer_, [&] { answered = true; });
  EXPECT_FALSE(removed.memory);
  EXPECT_THAT(removed.waiters, IsEmpty());
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, buffer_, 64}}),
            absl::StatusCode::kFailedPrecondition);

  EXPECT_THAT(registry_.Release(first->lease), IsEmpty());
  const auto freed = registry_.Release(second->lease);
  ASSERT_THAT(freed, SizeIs(1));
  EXPECT_EQ(freed[0].memory, 5u);
  ASSERT_THAT(freed[0].waiters, SizeIs(1));
  freed[0].waiters[0]();
  EXPECT_TRUE(answered);
  EXPECT_TRUE(registry_.idle());
}

TEST_F(BufferRegistryTest, RemoveIsIdempotent) {
  EXPECT_EQ(registry_.Remove(buffer_, [] {}).memory, 5u);
  const auto again = registry_.Remove(buffer_, [] {});
  EXPECT_FALSE(again.memory);
  EXPECT_THAT(again.waiters, SizeIs(1));
}

TEST_F(BufferRegistryTest, EveryWaiterOfOneRemovalIsAnswered) {
  const auto bound = Bind({{0, buffer_, 0}, {1, buffer_, 64}});
  registry_.Remove(buffer_, [] {});
  registry_.Remove(buffer_, [] {});
  EXPECT_THAT(registry_.Release(bound->lease)[0].waiters, SizeIs(2));
}

TEST_F(BufferRegistryTest, ReleasingTwiceIsHarmless) {
  const auto bound = Bind({{0, buffer_, 0}, {1, buffer_, 64}});
  registry_.Release(bound->lease);
  EXPECT_THAT(registry_.Release(bound->lease), IsEmpty());
  EXPECT_EQ(registry_.List()[0].leases, 0);
}

TEST_F(BufferRegistryTest, FailedBindTakesNoLease) {
  EXPECT_FALSE(Bind({{0, buffer_, 0}, {1, buffer_, 0}}).ok());
  EXPECT_EQ(registry_.List()[0].leases, 0);
  EXPECT_TRUE(registry_.idle());
}

// Prevents a stale memory id from reaching a new executor.
TEST_F(BufferRegistryTest, LostBuffersAbortAndCloseNothing) {
  registry_.MarkLost("cuda:0");
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, buffer_, 64}}),
            absl::StatusCode::kOk);
  const std::string idle = *Add("cpu", 3, "memory-b", 0, 64);
  registry_.MarkLost("cpu");
  EXPECT_EQ(BindCode({{0, buffer_, 0}, {1, buffer_, 64}}),
            absl::StatusCode::kAborted);
  EXPECT_EQ(BindCode({{0, *Add("cpu", 1, "m", 0, 64), 0},
                      {1, *Add("cpu", 2, "n", 0, 64), 0}}),
            absl::StatusCode::kOk);
  EXPECT_EQ(registry_.Remove(idle, [] {}).memory, std::nullopt);
}

TEST_F(BufferRegistryTest, RemoveAllKeepsWhatIsLeased) {
  const std::string other = *Add("cpu", 7, "memory-d", 0, 64);
  const auto bound = Bind({{0, buffer_, 0}, {1, buffer_, 64}});
  const auto freed = registry_.RemoveAll();
  ASSERT_THAT(freed, SizeIs(1));
  EXPECT_EQ(freed[0].memory, 7u);
  EXPECT_EQ(Add("cpu", 8, "memory-e", 0, 64).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(registry_.Release(bound->lease), SizeIs(1));
  EXPECT_THAT(registry_.List(), IsEmpty());
}

TEST_F(BufferRegistryTest, LimitsTheNumberOfBuffers) {
  for (int i = 1; i < 8; ++i) ASSERT_TRUE(Add("cpu", i, "m", 0, 64).ok());
  const auto status = Add("cpu", 8, "m", 0, 64).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("8"));
}

TEST_F(BufferRegistryTest, IdsAreLongAndDiffer) {
  const std::string other = *Add("cpu", 1, "m", 0, 64);
  EXPECT_THAT(other, SizeIs(32));
  EXPECT_NE(other, buffer_);
}

}  // namespace
}  // namespace kiln
