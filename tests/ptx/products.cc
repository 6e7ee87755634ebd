// Products on tensor cores (PTX ISA, sections "mma" and "wgmma"). All are
// summed in f32. Those of warpgroups are computed as late as may be, when they
// are waited for.
#include <array>
#include <bit>

#include "fmt/format.h"
#include "tests/ptx/access.h"
#include "tests/ptx/half.h"

namespace kiln::ptx {
namespace {

// Of a register, what a product takes as TF32.
float Tf32(const Warp& warp, Place place, int lane) {
  constexpr uint32_t kMask = 0xffffe000;
  return std::bit_cast<float>(Get<uint32_t>(Source(warp, place), lane) & kMask);
}

// Fragments as in kernel_sources/mma.cuh: a lane is 4 * row + column.
void MultiplyTf32(Warp& warp, const Instruction& i, uint32_t) {
  const Place* const d = i.operands;
  const Place* const a = d + 4;
  const Place* const b = a + 4;
  const Place* const c = b + 2;
  float left[16][8];
  float right[8][8];
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = lane / 4;
    const int column = lane % 4;
    for (int k = 0; k < 4; ++k) {
      left[row + k % 2 * 8][column + k / 2 * 4] = Tf32(warp, a[k], lane);
    }
    for (int k = 0; k < 2; ++k) {
      right[column + 4 * k][row] = Tf32(warp, b[k], lane);
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int k = 0; k < 4; ++k) {
      const int row = lane / 4 + k / 2 * 8;
      const int column = lane % 4 * 2 + k % 2;
      float sum = 0;
      for (int j = 0; j < 8; ++j) sum += left[row][j] * right[j][column];
      // c may be d.
      const auto before = Get<float>(Source(warp, c[k]), lane);
      Put(Destination(warp, d[k]), lane, before + sum);
    }
  }
}

// A matrix descriptor of wgmma; sizes in bytes.
struct Descriptor {
  explicit Descriptor(uint64_t bits)
      : start((bits & 0x3fff) << 4),
        leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4),
        mode(bits >> 62) {}

  // Of eight neighbours of k, in a row or column; with a swizzle, bits of the
  // address are exchanged. Addresses have 18 bits.
  uint32_t AddressOf(uint32_t row, uint32_t octet) const {
    const uint32_t row_bytes = mode == 0 ? 16 : 256u >> mode;
    uint32_t address = start + row / 8 * stride + row % 8 * row_bytes +
                       octet * (mode == 0 ? leading : 16);
    return Swizzled(address);
  }

  // The same where a row has 16 bytes of each k: of eight neighbouring rows.
  // Of swizzled ones, as many as a swizzle has lie side by side.
  uint32_t TransposedAddressOf(uint32_t eight, uint32_t k) const {
    const uint32_t beside = mode == 0 ? 1 : 16u >> mode;
    const uint32_t of_rows = mode == 0 ? stride : leading;
    const uint32_t of_depth = mode == 0 ? leading : stride;
    uint32_t address = start + eight / beside * of_rows + eight % beside * 16 +
                       k / 8 * of_depth + k % 8 * 16 * beside;
    return Swizzled(address);
  }

  uint32_t Swizzled(uint32_t address) const {
    const uint32_t swizzled_bits = mode == 0 ? 0 : (16u >> mode) - 1;
    return (address ^ (address >> 7 & swizzled_bits) << 4) & 0x3ffff;
  }

  uint32_t start;
  uint32_t leading;  // from one octet of k to the next, without a swizzle
  uint32_t stride;   // from eight rows to the next eight
  uint32_t mode;     // of the swizzle: none, 128, 64 or 32 bytes
};

constexpr int kDepth = 16;  // of k

using Convert = float (*)(uint16_t);

// Eight numbers in shared memory; false if they may not be read.
bool ReadEight(Warp& warp, const Instruction& i, uint32_t address,
               uint16_t (&numbers)[8]) {
  const std::byte* const from =
      Find(warp, i, 0, Space::kShared, address, 16, 16, false);
  if (from == nullptr) return false;
  for (int part = 0; part < 4; ++part) {
    CheckOrder((&warp)[part], i, 0, Access::kProduct, from, 16);
  }
  std::memcpy(numbers, from, sizeof(numbers));
  return true;
}

// Reads `rows` rows of kDepth numbers; `store` takes row, k and the number.
template <typename Store>
void ReadMatrix(Warp& warp, const Instruction& i, uint64_t bits, uint32_t rows,
                bool is_transposed, Convert convert, Store store) {
  const Descriptor matrix(bits);
  const uint32_t across = is_transposed ? kDepth : 2;
  uint16_t numbers[8];
  for (uint32_t n = 0; n < rows * kDepth / 8; ++n) {
    const uint32_t row = n / across;  // or eight of them
    const uint32_t octet = n % across;
    const uint32_t address = is_transposed
                                 ? matrix.TransposedAddressOf(row, octet)
                                 : matrix.AddressOf(row, octet);
    if (!ReadEight(warp, i, address, numbers)) return;
    for (uint32_t k = 0; k < 8; ++k) {
      const float number = convert(numbers[k]);
      is_transposed ? store(8 * row + k, octet, number)
                    : store(row, octet * 8 + k, number);
    }
  }
}

// Whether all lanes of the warpgroup have the same value.
bool IsUniform(const Warp* warps, Place place) {
  const auto first = Get<uint64_t>(Source(warps[0], place), 0);
  for (int warp = 0; warp < 4; ++warp) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (Get<uint64_t>(Source(warps[warp], place), lane) != first) {
        return false;
      }
    }
  }
  return true;
}

constexpr int kRows = 64;
constexpr int kMaxColumns = 256;

// Adds a row's products; `right` has kDepth rows of kMaxColumns.
void AddRow(const float* left, const float* right, int columns, float* sums) {
  for (int k = 0; k < kDepth; ++k) {
    const float factor = left[k];
    const float* const row = right + k * kMaxColumns;
#ifndef __clang__
#pragma GCC ivdep
#endif
    for (int n = 0; n < columns; ++n) {
      sums[n] = __builtin_fmaf(factor, row[n], sums[n]);
    }
  }
}

// Of a lane's numbers 4j, 4j + 1, 4j + 2, 4j + 3 the first two are neighbours
// in row lane / 4 of the warp's sixteen, the others in the row eight below.
void AddRowsOfWarp(Warp& warp, const Instruction& i, bool keeps,
                   const float (*left)[kDepth], const float* right) {
  const int columns = i.count * 2;
  std::array<std::array<float, kMaxColumns>, 16> sums = {};
  const auto for_each = [&](auto body) {
    for (int d = 0; d < i.count; ++d) {
      for (int lane = 0; lane < kLanes; ++lane) {
        body(d, lane,
             &sums[lane / 4 + d / 2 % 2 * 8][d / 4 * 8 + lane % 4 * 2 + d % 2]);
      }
    }
  };
  if (keeps) {
    for_each([&](int d, int lane, float* sum) {
      *sum = Get<float>(Source(warp, i.operands[d]), lane);
    });
  }
  for (int row = 0; row < 16; ++row) {
    AddRow(left[row], right, columns, sums[row].data());
  }
  for_each([&](int d, int lane, const float* sum) {
    Put(Destination(warp, i.operands[d]), lane, *sum);
  });
}

template <Convert kConvert>
void Multiply(Warp& warp, const PendingProduct& product) {
  static thread_local float left[kRows][kDepth];
  static thread_local float right[kDepth * kMaxColumns];
  const Instruction& i = *product.instruction;
  ReadMatrix(
      warp, i, product.left, kRows, false, kConvert,
      [&](uint32_t row, uint32_t k, float value) { left[row][k] = value; });
  ReadMatrix(warp, i, product.right, i.count * 2, product.is_transposed,
             kConvert, [&](uint32_t column, uint32_t k, float value) {
               right[k * kMaxColumns + column] = value;
             });
  Warp* const warps = &warp;  // neighbours in the block
  for (int part = 0; part < 4; ++part) {
    AddRowsOfWarp(warps[part], i, product.keeps, left + 16 * part, right);
  }
}

// By the first warp of a group, as all that follow.
template <bool kIsBFloat16>
void IssueProduct(Warp& warp, const Instruction& i, uint32_t) {
  const Place* const matrices = i.operands + i.count;
  if (!IsUniform(&warp, matrices[0]) || !IsUniform(&warp, matrices[1])) {
    return Fail(warp, i, 0, "the descriptors of a warpgroup differ");
  }
  constexpr uint32_t kWanted[] = {1, 1, 0};
  for (int k = 0; k < 3; ++k) {
    if (Get<uint32_t>(Source(warp, matrices[3 + k]), 0) != kWanted[k]) {
      return Fail(warp, i, 0,
                  "matrices are not negated, and the left one not transposed");
    }
  }
  Warpgroup& group = warp.block->warpgroups[warp.index / 4];
  group.products.push_back(
      {&i, kIsBFloat16, Get<uint32_t>(Source(warp, matrices[6]), 0) != 0,
       Get<uint64_t>(Source(warp, matrices[0]), 0),
       Get<uint64_t>(Source(warp, matrices[1]), 0),
       (GetMask(warp, matrices[2]) & 1) != 0, group.product_group});
}

void CommitProducts(Warp& warp, const Instruction&, uint32_t) {
  ++warp.block->warpgroups[warp.index / 4].product_group;
}

void WaitForProducts(Warp& warp, const Instruction& i, uint32_t) {
  Warpgroup& group = warp.block->warpgroups[warp.index / 4];
  const int64_t end =
      group.product_group - Get<uint32_t>(Source(warp, i.operands[0]), 0);
  while (!group.products.empty() && group.products.front().group < end) {
    const PendingProduct& product = group.products.front();
    if (product.is_bfloat16) {
      Multiply<FloatOfBFloat16>(warp, product);
    } else {
      Multiply<FloatOfHalf>(warp, product);
    }
    group.products.pop_front();
  }
}

}  // namespace

void AddProducts(OperationTable* table) {
  OperationTable& t = *table;
  t["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"] = {
      MultiplyTf32, "v4v4v2v4", Flow::kWarp};
  t["wgmma.commit_group.sync.aligned"] = {CommitProducts, "", Flow::kWarpgroup};
  t["wgmma.wait_group.sync.aligned"] = {WaitForProducts, "w", Flow::kWarpgroup};
  for (int columns = 8; columns <= kMaxColumns; columns += 8) {
    const std::string name =
        fmt::format("wgmma.mma_async.sync.aligned.m64n{}k16.f32.", columns);
    const auto count = static_cast<uint8_t>(columns / 2);
    t[name + "f16.f16"] = {IssueProduct<false>, "vddpwwww", Flow::kWarpgroup,
                           count};
    t[name + "bf16.bf16"] = {IssueProduct<true>, "vddpwwww", Flow::kWarpgroup,
                             count};
  }
}

}  // namespace kiln::ptx
