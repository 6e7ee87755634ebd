// Longer than 400 lines because products of warps and of warpgroups share code.
// Products on tensor cores (PTX ISA, sections "mma" and "wgmma"). All are
// summed in f32, those of warpgroups also as the GPU rounds them if a launch
// wants that, and as late as may be, when they are waited for.
#include <algorithm>
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
struct BFloats {
  static constexpr int kPerRegister = 2;
  static float NumberOf(uint32_t bits, int number) {
    return std::bit_cast<float>(bits >> 16 * number << 16);
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

using Floats = float __attribute__((vector_size(kEight * sizeof(float))));
using HalfFloats = float __attribute__((vector_size(sizeof(Floats) / 2)));

// Eight rows of a matrix.
using Rows = std::array<std::array<float, kDepth>, kEight>;

// Of the right matrix, eight columns for each k. Even ones come first: so
// registers have columns of a result.
using Columns = std::array<Floats, kDepth>;

constexpr int ColumnAt(int place) {
  return place < kEight / 2 ? 2 * place : 2 * place - kEight + 1;
}

// Numbers of 16 bits, and such in words.
using Numbers = uint16_t __attribute__((vector_size(kEight * 2)));
using Words = uint32_t __attribute__((vector_size(kEight * 4)));
using Integers = int32_t __attribute__((vector_size(kEight * 4)));

// As FloatOfHalf and FloatOfBFloat16.
void ConvertHalves(const Words& bits, Floats* floats) {
  constexpr uint32_t kInfinity = 0x1f << 23;
  const Words none = {};
  const Words rest = (bits & 0x7fff) << 13;
  const Floats moved = reinterpret_cast<Floats>(rest) * 0x1p112f;
  const Words special =
      rest > kInfinity ? none + 0x7fc00000 : none + 0x7f800000;
  const Words magnitude =
      rest >= kInfinity ? special : reinterpret_cast<Words>(moved);
  *floats = reinterpret_cast<Floats>((bits & 0x8000) << 16 | magnitude);
}
void ConvertBFloat16s(const Words& bits, Floats* floats) {
  *floats = reinterpret_cast<Floats>(bits << 16);
}

using Convert = void (*)(const Words& bits, Floats* floats);

// Eight numbers in shared memory; null if they may not be read.
const std::byte* FindEight(Warp& warp, const Instruction& i,
                           SharedRaces::ProductOrder* order, uint32_t address) {
  constexpr uint64_t kSize = kEight * sizeof(uint16_t);
  const std::byte* const found =
      FindIn<Space::kShared>(warp, i, 0, address, kSize, kSize, false);
  if (found == nullptr) return nullptr;
  SharedRaces& races = warp.block->races;
  const int other =
      races.ReadByProduct(order, found - warp.block->shared.data());
  if (other < 0) return found;
  FailOrder(warp, i, 0, found, other);
  return nullptr;
}

// Reads eight numbers; false if they may not be read.
template <Convert kConvert>
bool ReadEight(Warp& warp, const Instruction& i,
               SharedRaces::ProductOrder* order, uint32_t address,
               Floats* floats) {
  const std::byte* const from = FindEight(warp, i, order, address);
  if (from == nullptr) return false;
  Numbers numbers;
  std::memcpy(&numbers, from, sizeof(numbers));
  kConvert(__builtin_convertvector(numbers, Words), floats);
  return true;
}

// Reads a matrix whose rows, or columns of the right one, lie along k; false if
// it may not be read.
template <Convert kConvert>
bool ReadRows(Warp& warp, const Instruction& i, uint64_t bits,
              std::span<Rows> matrix) {
  const Descriptor descriptor(bits);
  auto order = warp.block->races.OrderOfProduct(warp.index);
  for (uint32_t eight = 0; eight < matrix.size(); ++eight) {
    for (uint32_t n = 0; n < kDepth; ++n) {
      const uint32_t address =
          descriptor.AddressOf(eight * kEight + n / 2, n % 2);
      Floats floats;
      if (!ReadEight<kConvert>(warp, i, &order, address, &floats)) return false;
      std::memcpy(&matrix[eight][n / 2][n % 2 * kEight], &floats,
                  sizeof(floats));
    }
  }
  return true;
}

// Reads a right matrix that lies transposed.
template <Convert kConvert>
bool ReadColumns(Warp& warp, const Instruction& i, uint64_t bits,
                 std::span<Columns> matrix) {
  const Descriptor descriptor(bits);
  auto order = warp.block->races.OrderOfProduct(warp.index);
  for (uint32_t eight = 0; eight < matrix.size(); ++eight) {
    for (uint32_t k = 0; k < kDepth; ++k) {
      const uint32_t address = descriptor.TransposedAddressOf(eight, k);
      Floats columns;
      if (!ReadEight<kConvert>(warp, i, &order, address, &columns)) {
        return false;
      }
      matrix[eight][k] = __builtin_shufflevector(
          columns, columns, ColumnAt(0), ColumnAt(1), ColumnAt(2), ColumnAt(3),
          ColumnAt(4), ColumnAt(5), ColumnAt(6), ColumnAt(7));
    }
  }
  return true;
}

// Of eight rows, columns. Each round takes vectors half of all apart and
// interleaves them, by which a number's place, three bits of the vector and
// three in it, turns by one bit.
void Transpose(const Rows& rows, Columns* columns) {
  for (int octet = 0; octet < 2; ++octet) {
    std::array<Floats, kEight> from;
    std::array<Floats, kEight> to;
    for (int i = 0; i < kEight; ++i) {
      std::memcpy(&from[i], &rows[ColumnAt(i)][octet * kEight], sizeof(Floats));
    }
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < kEight / 2; ++i) {
        const Floats a = from[i];
        const Floats b = from[i + kEight / 2];
        to[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        to[2 * i + 1] =
            __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
      }
      from = to;
    }
    std::copy(from.begin(), from.end(), columns->begin() + octet * kEight);
  }
}

// Reads the right matrix; false if it may not be read.
template <Convert kConvert>
bool ReadRight(Warp& warp, const PendingProduct& product,
               std::span<Columns> matrix) {
  static thread_local std::array<Rows, kMaxColumns / kEight> all_rows;
  const Instruction& i = *product.instruction;
  if (product.is_transposed) {
    return ReadColumns<kConvert>(warp, i, product.right, matrix);
  }
  const std::span rows(all_rows.data(), matrix.size());
  if (!ReadRows<kConvert>(warp, i, product.right, rows)) return false;
  for (size_t eight = 0; eight < rows.size(); ++eight) {
    Transpose(rows[eight], &matrix[eight]);
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

// The sum of a row's products and of `before` for each column.
Floats SumInFloats(const std::array<float, kDepth>& row, const Columns& right,
                   Floats before) {
  for (int k = 0; k < kDepth; ++k) before += row[k] * right[k];
  return before;
}

Words MagnitudeOf(Floats numbers) {
  return reinterpret_cast<Words>(numbers) & 0x7fffffff;
}
Words Larger(Words a, Words b) { return a > b ? a : b; }

// The nearest float towards zero of what is less than 2^30.
Floats TowardsZero(Integers sums) {
  const auto nearest = __builtin_convertvector(sums, Floats);
  const auto back = __builtin_convertvector(nearest, Integers);
  const Integers is_beyond = sums < 0 ? back < sums : back > sums;  // -1 or 0
  return reinterpret_cast<Floats>(reinterpret_cast<Integers>(nearest) +
                                  is_beyond);
}

// The same as an H100 and an H200 round it, by errors of long sums: all are cut
// off at 2^-24 of the power of two in the largest of them, and the sum to what
// f32 holds.
Floats SumOnTensorCores(const std::array<float, kDepth>& row,
                        const Columns& right, Floats before) {
  constexpr uint32_t kLeast = 25;  // exponents; what is smaller hardly counts
  constexpr uint32_t kInfinite = 255;
  Columns products;
  Words largest = MagnitudeOf(before);
  for (int k = 0; k < kDepth; ++k) {
    products[k] = row[k] * right[k];
    largest = Larger(largest, MagnitudeOf(products[k]));
  }
  const Words exponent = Larger(largest >> 23, Words{} + kLeast);
  for (int i = 0; i < kEight; ++i) {
    if (exponent[i] == kInfinite) return SumInFloats(row, right, before);
  }
  const auto scale = reinterpret_cast<Floats>((278 - exponent) << 23);
  auto sums = __builtin_convertvector(before * scale, Integers);
  for (const Floats& product : products) {
    sums += __builtin_convertvector(product * scale, Integers);
  }
  return TowardsZero(sums) * reinterpret_cast<Floats>((exponent - 24) << 23);
}

// Adds the products of eight rows and eight columns to what lanes have of them,
// four to a row: neighbours in `even` and `odd`.
template <bool kKeeps, bool kRounds>
void AddEights(const Rows& left, const Columns& right, std::byte* even,
               std::byte* odd) {
  constexpr size_t kSize = sizeof(HalfFloats);
  Floats sums[kEight];
  for (int row = 0; row < kEight; ++row) {
    HalfFloats halves[2] = {};
    if (kKeeps) {
      std::memcpy(&halves[0], even + row * kSize, kSize);
      std::memcpy(&halves[1], odd + row * kSize, kSize);
    }
    sums[row] =
        __builtin_shufflevector(halves[0], halves[1], 0, 1, 2, 3, 4, 5, 6, 7);
  }
  if constexpr (kRounds) {
    for (int row = 0; row < kEight; ++row) {
      sums[row] = SumOnTensorCores(left[row], right, sums[row]);
    }
  } else {
    for (int k = 0; k < kDepth; ++k) {
      for (int row = 0; row < kEight; ++row) {
        sums[row] += left[row][k] * right[k];
      }
    }
  }
  for (int row = 0; row < kEight; ++row) {
    const auto* const sum = reinterpret_cast<const std::byte*>(&sums[row]);
    std::memcpy(even + row * kSize, sum, kSize);
    std::memcpy(odd + row * kSize, sum + kSize, kSize);
  }
}

// Of a warp's sixteen rows the first eight are in its registers 4j and 4j + 1,
// the others in the two that follow.
void AddRows(Warp* warps, const PendingProduct& product,
             std::span<const Rows> left, std::span<const Columns> right) {
  const bool rounds = warps->grid->rounds_sums;
  const auto add =
      product.keeps
          ? (rounds ? AddEights<true, true> : AddEights<true, false>)
          : (rounds ? AddEights<false, true> : AddEights<false, false>);
  for (size_t half = 0; half < left.size(); ++half) {
    Warp& warp = warps[half / 2];
    const Place* sums = product.instruction->operands + half % 2 * 2;
    for (const Columns& columns : right) {
      add(left[half], columns, Destination(warp, sums[0]),
          Destination(warp, sums[1]));
      sums += 4;
    }
  }
}

template <Convert kConvert>
void Multiply(Warp& warp, const PendingProduct& product) {
  static thread_local std::array<Rows, kRows / kEight> left;
  static thread_local std::array<Columns, kMaxColumns / kEight> all_right;
  const Instruction& i = *product.instruction;
  const std::span right(all_right.data(), i.count * 2 / kEight);
  if (ReadRows<kConvert>(warp, i, product.left, left) &&
      ReadRight<kConvert>(warp, product, right)) {
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
      Multiply<ConvertBFloat16s>(warp, product);
    } else {
      Multiply<ConvertHalves>(warp, product);
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
  t["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] = {
      MultiplyFragments<BFloats>, "v4v4v2v4", Flow::kWarp};
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
