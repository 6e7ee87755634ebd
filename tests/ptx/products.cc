// Products on tensor cores (PTX ISA, sections "mma" and "wgmma"). All are
// summed in f32. Those of warpgroups are computed as late as may be, when they
// are waited for.
#include <array>
#include <bit>
#include <span>

#include "fmt/format.h"
#include "tests/ptx/access.h"
#include "tests/ptx/half.h"

namespace kiln::ptx {
namespace {

// What the registers of a fragment hold, in the order of k.
struct Tf32 {
  static constexpr int kPerRegister = 1;
  static float NumberOf(uint32_t bits, int) {
    constexpr uint32_t kMask = 0xffffe000;
    return std::bit_cast<float>(bits & kMask);
  }
};
struct Halves {
  static constexpr int kPerRegister = 2;
  static float NumberOf(uint32_t bits, int number) {
    return FloatOfHalf(static_cast<uint16_t>(bits >> 16 * number));
  }
};

// Fragments as in kernel_sources/mma.cuh: a lane is 4 * row + column, of which
// a column has as many neighbours as a register.
template <typename Format>
void MultiplyFragments(Warp& warp, const Instruction& i, uint32_t) {
  constexpr int kNumbers = Format::kPerRegister;
  const Place* const d = i.operands;
  const Place* const a = d + 4;
  const Place* const b = a + 4;
  const Place* const c = b + 2;
  float left[16][8 * kNumbers];
  float right[8 * kNumbers][8];
  const auto read = [&](Place place, int lane, auto put) {
    const auto bits = Get<uint32_t>(Source(warp, place), lane);
    for (int n = 0; n < kNumbers; ++n) put(n, Format::NumberOf(bits, n));
  };
  for (int lane = 0; lane < kLanes; ++lane) {
    const int row = lane / 4;
    const int column = lane % 4;
    for (int k = 0; k < 4; ++k) {
      read(a[k], lane, [&](int n, float number) {
        left[row + k % 2 * 8][(column + k / 2 * 4) * kNumbers + n] = number;
      });
    }
    for (int k = 0; k < 2; ++k) {
      read(b[k], lane, [&](int n, float number) {
        right[(column + 4 * k) * kNumbers + n][row] = number;
      });
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int k = 0; k < 4; ++k) {
      const int row = lane / 4 + k / 2 * 8;
      const int column = lane % 4 * 2 + k % 2;
      float sum = 0;
      for (int j = 0; j < 8 * kNumbers; ++j) {
        sum += left[row][j] * right[j][column];
      }
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

constexpr int kRows = 64;
constexpr int kMaxColumns = 256;
constexpr int kDepth = 16;  // of k
constexpr int kEight = 8;   // neighbours in shared memory

// Eight rows of a matrix, or columns of the right one, for each k. Even ones
// come first: so registers have columns of a result.
using Floats = float __attribute__((vector_size(kEight * sizeof(float))));
using Eight = std::array<Floats, kDepth>;

constexpr int PlaceInEight(int i) { return i % 2 * kEight / 2 + i / 2; }

using Convert = float (*)(uint16_t);

// Eight numbers in shared memory; null if they may not be read.
const std::byte* FindEight(Warp& warp, const Instruction& i,
                           const SharedRaces::ProductOrder& order,
                           uint32_t address) {
  constexpr uint64_t kSize = kEight * sizeof(uint16_t);
  const std::byte* const found =
      Find(warp, i, 0, Space::kShared, address, kSize, kSize, false);
  if (found == nullptr) return nullptr;
  SharedRaces& races = warp.block->races;
  const int other =
      races.ReadByProduct(order, found - warp.block->shared.data(), kSize);
  if (other < 0) return found;
  FailOrder(warp, i, 0, found, other);
  return nullptr;
}

// Reads a matrix; false if it may not be read.
template <Convert kConvert>
bool ReadMatrix(Warp& warp, const Instruction& i, uint64_t bits,
                bool is_transposed, std::span<Eight> matrix) {
  const Descriptor descriptor(bits);
  const auto order = warp.block->races.OrderOfProduct(warp.index);
  uint16_t numbers[kEight];
  for (uint32_t eight = 0; eight < matrix.size(); ++eight) {
    Eight& rows = matrix[eight];
    for (uint32_t n = 0; n < kDepth; ++n) {
      const uint32_t address =
          is_transposed ? descriptor.TransposedAddressOf(eight, n)
                        : descriptor.AddressOf(eight * kEight + n / 2, n % 2);
      const std::byte* const from = FindEight(warp, i, order, address);
      if (from == nullptr) return false;
      std::memcpy(numbers, from, sizeof(numbers));
      for (int j = 0; j < kEight; ++j) {
        const float number = kConvert(numbers[j]);
        if (is_transposed) {
          rows[n][PlaceInEight(j)] = number;
        } else {
          rows[n % 2 * kEight + j][PlaceInEight(n / 2)] = number;
        }
      }
    }
  }
  return true;
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

// Adds the products of eight rows and eight columns to what lanes have of them,
// four to a row: neighbours in `even` and `odd`.
void AddEights(const Eight& left, const Eight& right, bool keeps,
               std::byte* even, std::byte* odd) {
  constexpr size_t kHalf = sizeof(Floats) / 2;
  std::array<Floats, kEight> sums = {};
  const auto of_row = [&](int row, auto copy) {
    auto* const sum = reinterpret_cast<std::byte*>(&sums[row]);
    copy(even + row * kHalf, sum);
    copy(odd + row * kHalf, sum + kHalf);
  };
  for (int row = 0; keeps && row < kEight; ++row) {
    of_row(row, [](const std::byte* lanes, std::byte* sum) {
      std::memcpy(sum, lanes, kHalf);
    });
  }
  for (int k = 0; k < kDepth; ++k) {
    for (int row = 0; row < kEight; ++row) {
      sums[row] += left[k][PlaceInEight(row)] * right[k];
    }
  }
  for (int row = 0; row < kEight; ++row) {
    of_row(row, [](std::byte* lanes, const std::byte* sum) {
      std::memcpy(lanes, sum, kHalf);
    });
  }
}

// Of a warp's sixteen rows the first eight are in its registers 4j and 4j + 1,
// the others in the two that follow.
void AddRows(Warp* warps, const PendingProduct& product,
             std::span<const Eight> left, std::span<const Eight> right) {
  for (size_t half = 0; half < left.size(); ++half) {
    Warp& warp = warps[half / 2];
    const Place* sums = product.instruction->operands + half % 2 * 2;
    for (const Eight& columns : right) {
      AddEights(left[half], columns, product.keeps, Destination(warp, sums[0]),
                Destination(warp, sums[1]));
      sums += 4;
    }
  }
}

template <Convert kConvert>
void Multiply(Warp& warp, const PendingProduct& product) {
  static thread_local std::array<Eight, kRows / kEight> left;
  static thread_local std::array<Eight, kMaxColumns / kEight> all_right;
  const Instruction& i = *product.instruction;
  const std::span right(all_right.data(), i.count * 2 / kEight);
  if (ReadMatrix<kConvert>(warp, i, product.left, false, left) &&
      ReadMatrix<kConvert>(warp, i, product.right, product.is_transposed,
                           right)) {
    AddRows(&warp, product, left, right);  // neighbours in the block
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
      MultiplyFragments<Tf32>, "v4v4v2v4", Flow::kWarp};
  t["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] = {
      MultiplyFragments<Halves>, "v4v4v2v4", Flow::kWarp};
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
