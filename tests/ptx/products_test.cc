// Products on tensor cores against plain sums. Prevents wrong fragments and
// descriptors.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/ptx/half.h"
#include "tests/ptx/program_testing.h"

namespace kiln::ptx {
namespace {

// Small numbers, whose products and sums are exact.
float Number(int row, int k) {
  return static_cast<float>((row * 7 + k * 3) % 11 - 5) / 4;
}

// Multiplies matrices of `depth` numbers of k. `register_of` gives what a
// register holds of a row, or of a column of the right one: a place is one
// number of k, or two neighbours.
void CheckWarpProduct(const std::string& shape_and_types, int depth,
                      uint32_t (*register_of)(int row, int place)) {
  std::vector<uint32_t> input;
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4;
    const int t = lane % 4;
    input.push_back(register_of(g, t));
    input.push_back(register_of(g + 8, t));
    input.push_back(register_of(g, t + 4));
    input.push_back(register_of(g + 8, t + 4));
    input.push_back(register_of(g + 50, t));  // of columns 50, ...
    input.push_back(register_of(g + 50, t + 4));
  }
  const Outcome outcome = RunBody(
      "mul.wide.u32 %rd1, %t, 24;\n"
      "add.s64 %rd2, %in, %rd1;\n"
      "ld.global.v2.u32 {%r1, %r2}, [%rd2];\n"
      "ld.global.v2.u32 {%r3, %r4}, [%rd2+8];\n"
      "ld.global.v2.u32 {%r5, %r6}, [%rd2+16];\n"
      "mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1; mov.f32 %f3, %f1;"
      " mov.f32 %f4, %f1;\n"
      "mma.sync.aligned." +
          shape_and_types +
          " {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
          "{%f1, %f2, %f3, %f4};\n"
          "mul.wide.u32 %rd3, %t, 16;\n"
          "add.s64 %rd4, %out, %rd3;\n"
          "st.global.f32 [%rd4], %f1; st.global.f32 [%rd4+4], %f2;"
          " st.global.f32 [%rd4+8], %f3; st.global.f32 [%rd4+12], %f4;",
      input, 128, Threads(32));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  for (int i = 0; i < 128; ++i) {
    const int row = i / 16 + i / 2 % 2 * 8;
    const int column = i / 4 % 4 * 2 + i % 2;
    float sum = 1;
    for (int k = 0; k < depth; ++k) {
      sum += Number(row, k) * Number(column + 50, k);
    }
    EXPECT_EQ(outcome.words[i], Bits(sum)) << i;
  }
}

TEST(PtxProductsTest, Tf32ProductsHaveTheFragmentsOfTheManual) {
  CheckWarpProduct("m16n8k8.row.col.f32.tf32.tf32.f32", 8,
                   [](int row, int place) { return Bits(Number(row, place)); });
}

TEST(PtxProductsTest, HalfProductsHaveTheFragmentsOfTheManual) {
  CheckWarpProduct("m16n8k16.row.col.f32.f16.f16.f32", 16,
                   [](int row, int place) {
                     const uint32_t upper = HalfOf(Number(row, 2 * place + 1));
                     return upper << 16 | HalfOf(Number(row, 2 * place));
                   });
}

TEST(PtxProductsTest, BFloatProductsHaveTheFragmentsOfTheManual) {
  CheckWarpProduct("m16n8k16.row.col.f32.bf16.bf16.f32", 16,
                   [](int row, int place) {
                     const uint32_t upper = Bits(Number(row, 2 * place + 1));
                     const uint32_t lower = Bits(Number(row, 2 * place));
                     return (upper & 0xffff0000) | lower >> 16;
                   });
}

// Where row `row` has its octet of k: as kernel_sources/wgmma.cuh says, in
// units of 16 bytes.
// How the right matrix lies: core matrices, rows of two units that are
// swizzled, or lines of which each has a number of all columns, transposed.
enum class Layout { kCores, kSwizzled, kLines };

// Of a number of row `row`, in units of 8 numbers, and which of these it is.
std::pair<int, int> PlaceOf(int row, int k, int rows, Layout layout) {
  switch (layout) {
    case Layout::kCores:
      return {k / 8 * rows + row, k % 8};
    case Layout::kSwizzled:
      return {2 * row + ((k / 8 ^ row >> 2) & 1), k % 8};
    case Layout::kLines:  // of 64 numbers, of which the rest is not there
      break;
  }
  return {8 * k + (row / 8 ^ k % 8), row % 8};
}

// Of a descriptor: from where eight rows lie to the next eight, and how.
uint64_t RowsOf(Layout layout) {
  switch (layout) {
    case Layout::kCores:
      return 8;
    case Layout::kSwizzled:
      return 16 | uint64_t{3} << 30;
    case Layout::kLines:
      break;
  }
  return 64 | uint64_t{1} << 30;
}

// `number` and `rounded` are a matrix' numbers, the right one's from row 50 on,
// and what becomes of their sum.
void CheckWarpgroupProduct(
    Layout left, Layout right, bool rounds = false,
    float (*number)(int row, int k) = Number,
    float (*rounded)(float sum) = [](float sum) { return sum; }) {
  constexpr int kColumns = 16;
  constexpr int kUnits = 2 * 64 + 128;
  std::vector<uint32_t> input(kUnits * 4);
  const auto put = [&](int first_unit, int rows, int first_row, Layout layout) {
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < 16; ++k) {
        const auto [unit, part] = PlaceOf(row, k, rows, layout);
        input[(first_unit + unit) * 4 + part / 2] |=
            uint32_t{HalfOf(number(first_row + row, k))} << (part % 2 * 16);
      }
    }
  };
  put(0, 64, 0, left);
  put(128, kColumns, 50, right);
  // The first shared byte is at 1024; units of 16 bytes.
  const auto descriptor = [&](uint64_t unit, uint64_t rows, Layout layout) {
    return (1024 / 16 + unit) | rows << 16 | RowsOf(layout) << 32;
  };
  std::string copy = "mov.u32 %r1, dynamic; mad.lo.u32 %r1, %t, 4, %r1;\n";
  for (int i = 0; i < kUnits * 4 / 128; ++i) {
    copy += fmt::format(
        "ld.global.u32 %r2, [%own_in+{0}]; st.shared.u32 [%r1+{0}], %r2;\n",
        i * 512);
  }
  Launch launch = Threads(128, kUnits * 16);
  launch.rounds_sums = rounds;
  const Outcome outcome = RunBody(
      copy +
          fmt::format(
              "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
              "mov.u64 %rd1, {}; mov.u64 %rd2, {};\n"
              "setp.ne.u32 %p1, %r0, 0;\n"
              "wgmma.fence.sync.aligned;\n"
              "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {{%f0, %f1, "
              "%f2, %f3, %f4, %f5, %f6, %f7}}, %rd1, %rd2, %p1, 1, 1, 0, {};\n"
              "wgmma.commit_group.sync.aligned;\n"
              "wgmma.wait_group.sync.aligned 0;\n"
              "mul.wide.u32 %rd3, %t, 32; add.s64 %rd4, %out, %rd3;\n",
              descriptor(0, 64, left), descriptor(128, kColumns, right),
              right == Layout::kLines ? 1 : 0) +
          "st.global.v4.f32 [%rd4], {%f0, %f1, %f2, %f3};\n"
          "st.global.v4.f32 [%rd4+16], {%f4, %f5, %f6, %f7};",
      input, 64 * kColumns, launch);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  for (int i = 0; i < 64 * kColumns; ++i) {
    const int thread = i / 8;
    const int d = i % 8;
    const int row = thread / 32 * 16 + thread % 32 / 4 + d / 2 % 2 * 8;
    const int column = d / 4 * 8 + thread % 4 * 2 + d % 2;
    float sum = 0;
    for (int k = 0; k < 16; ++k) sum += number(row, k) * number(column + 50, k);
    ASSERT_EQ(outcome.words[i], Bits(rounded(sum))) << row << " " << column;
  }
}

TEST(PtxProductsTest, WarpgroupProductsReadCoreMatrices) {
  CheckWarpgroupProduct(Layout::kCores, Layout::kCores);
}

TEST(PtxProductsTest, WarpgroupProductsReadSwizzledRows) {
  CheckWarpgroupProduct(Layout::kSwizzled, Layout::kSwizzled);
}

TEST(PtxProductsTest, WarpgroupProductsReadLines) {
  CheckWarpgroupProduct(Layout::kCores, Layout::kLines);
}

TEST(PtxProductsTest, ExactSumsAreNotRounded) {
  CheckWarpgroupProduct(Layout::kCores, Layout::kCores, true);
}

// Of 1 or -1 in front of products of 2^-24 each, which one by one are half of
// what shows, and in f32 are lost.
TEST(PtxProductsTest, SumsAreRoundedTowardsZeroWhereALaunchWantsThat) {
  CheckWarpgroupProduct(
      Layout::kCores, Layout::kCores, true,
      [](int row, int k) {
        const float sign = row < 50 && row % 2 == 1 ? -1.0f : 1.0f;
        return k > 3 ? 0.0f : sign * (k == 0 ? 1.0f : 0x1p-12f);
      },
      [](float sum) { return sum + (sum < 0 ? -0x1p-23f : 0x1p-23f); });
}

// What is below 2^-24 of the largest is cut off before it is added.
TEST(PtxProductsTest, SmallProductsAreCutOffWhereALaunchWantsThat) {
  CheckWarpgroupProduct(
      Layout::kCores, Layout::kCores, true,
      [](int, int k) { return k == 0 ? 1.0f : 0x1p-13f; },
      [](float) { return 1.0f; });
}

}  // namespace
}  // namespace kiln::ptx
