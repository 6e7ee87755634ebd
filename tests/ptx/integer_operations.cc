// Arithmetic and bits of integers, moves and selections (PTX ISA, sections
// "Integer Arithmetic", "Logic and Shift" and "Data Movement").
#include <bit>
#include <type_traits>

#include "tests/ptx/integer_functions.h"
#include "tests/ptx/lanes.h"

namespace kiln::ptx {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

struct Subtract {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};
struct MultiplyLow {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
struct MultiplyHigh {
  template <typename T>
  static T Apply(T a, T b) {
    using Wide =
        std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>(static_cast<Wide>(a) * b >> (8 * sizeof(T)));
  }
};
struct MultiplyAdd {
  template <typename T>
  static T Apply(T a, T b, T c) {
    return Add::Apply(MultiplyLow::Apply(a, b), c);
  }
};
template <typename Wide>
struct MultiplyWide {
  template <typename T>
  static Wide Apply(T a, T b) {
    return static_cast<Wide>(a) * static_cast<Wide>(b);
  }
  template <typename T>
  static Wide Apply(T a, T b, Wide c) {
    return Add::Apply(Apply(a, b), c);
  }
};
struct Divide {
  template <typename T>
  static T Apply(T a, T b) {
    return b == 0 ? static_cast<T>(-1) : static_cast<T>(a / b);
  }
};
struct Remainder {
  template <typename T>
  static T Apply(T a, T b) {
    return b == 0 ? a : static_cast<T>(a % b);
  }
};
struct Negate {
  template <typename T>
  static T Apply(T a) {
    return Subtract::Apply(T{0}, a);
  }
};
struct Absolute {
  template <typename T>
  static T Apply(T a) {
    return a < 0 ? Negate::Apply(a) : a;
  }
};
struct Xor {
  template <typename T>
  static T Apply(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <typename T>
  static T Apply(T a) {
    return static_cast<T>(~a);
  }
};
struct Copy {
  template <typename T>
  static T Apply(T a) {
    return a;
  }
};

// Shifts by more than the width give what shifting bit by bit would.
struct ShiftLeft {
  template <typename T>
  static T Apply(T a, uint32_t by) {
    if (by >= 8 * sizeof(T)) return 0;
    return static_cast<T>(static_cast<Unsigned<T>>(a) << by);
  }
};
struct ShiftRight {
  template <typename T>
  static T Apply(T a, uint32_t by) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    if (by < kBits) return static_cast<T>(a >> by);
    return a < 0 ? static_cast<T>(-1) : T{0};
  }
};

struct ReverseBits {
  static uint32_t Apply(uint32_t a) {
    uint32_t reversed = 0;
    for (int i = 0; i < 32; ++i) reversed |= (a >> i & 1) << (31 - i);
    return reversed;
  }
};
struct CountBits {
  static uint32_t Apply(uint32_t a) { return std::popcount(a); }
};
struct CountLeadingZeros {
  static uint32_t Apply(uint32_t a) { return std::countl_zero(a); }
};
struct FindHighest {
  static uint32_t Apply(uint32_t a) {
    return a == 0 ? ~0u : 31u - std::countl_zero(a);
  }
};
// By how much to shift left to bring the highest bit to the top.
struct FindShift {
  static uint32_t Apply(uint32_t a) {
    return a == 0 ? ~0u : static_cast<uint32_t>(std::countl_zero(a));
  }
};

// prmt.b32 in its default mode: each nibble of `how` chooses one of eight
// bytes, or with its top bit copies of that byte's sign.
struct PermuteBytes {
  static uint32_t Apply(uint32_t a, uint32_t b, uint32_t how) {
    const uint64_t bytes = a | static_cast<uint64_t>(b) << 32;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t nibble = how >> (4 * i) & 15;
      uint32_t byte = bytes >> (8 * (nibble & 7)) & 255;
      if ((nibble & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
      result |= byte << (8 * i);
    }
    return result;
  }
};

// The halves of a times two neighbouring bytes of b.
template <int kFirstByte>
struct DotOfTwo {
  static uint32_t Apply(uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t bytes = b >> (8 * kFirstByte);
    return c + (a & 0xffff) * (bytes & 255) + (a >> 16) * (bytes >> 8 & 255);
  }
};

template <typename T>
void InsertBits(Warp& warp, const Instruction& i, uint32_t mask) {
  const Place* const o = i.operands;
  ForLanes(mask, [&](int lane) {
    const T from = Get<T>(Source(warp, o[1]), lane);
    const T into = Get<T>(Source(warp, o[2]), lane);
    const uint32_t at = Get<uint32_t>(Source(warp, o[3]), lane) & 255;
    const uint32_t length = Get<uint32_t>(Source(warp, o[4]), lane) & 255;
    const T ones = length >= 8 * sizeof(T) ? ~T{0} : (T{1} << length) - 1;
    const T field = ShiftLeft::Apply(ones, at);
    Put<T>(Destination(warp, o[0]), lane,
           (ShiftLeft::Apply(from, at) & field) | (into & ~field));
  });
}

template <typename T>
struct ExtractBits {
  static T Apply(T a, uint32_t at, uint32_t length) {
    at &= 255;
    length &= 255;
    const T shifted = ShiftRight::Apply(static_cast<Unsigned<T>>(a), at);
    if (length >= 8 * sizeof(T)) return shifted;
    return shifted & ((Unsigned<T>{1} << length) - 1);
  }
};

// A double funnel shift; `by` is clamped or taken modulo 32.
template <bool kLeft, bool kWraps>
struct Funnel {
  static uint32_t Apply(uint32_t low, uint32_t high, uint32_t by) {
    const uint64_t both = low | static_cast<uint64_t>(high) << 32;
    by = kWraps ? by & 31 : std::min(by, 32u);
    return static_cast<uint32_t>(kLeft ? both << by >> 32 : both >> by);
  }
};

template <typename T>
void Select(Warp& warp, const Instruction& i, uint32_t mask) {
  std::byte* const to = Destination(warp, i.operands[0]);
  const std::byte* const a = Source(warp, i.operands[1]);
  const std::byte* const b = Source(warp, i.operands[2]);
  const uint32_t chosen = GetMask(warp, i.operands[3]);
  ForVectors(mask, [&](int lane) {
    Put<T>(to, lane, Get<T>((chosen >> lane & 1) != 0 ? a : b, lane));
  });
}

template <typename Function>
void Predicates(Warp& warp, const Instruction& i, uint32_t mask) {
  PutMask(warp, i.operands[0], mask,
          Function::Apply(GetMask(warp, i.operands[1]),
                          GetMask(warp, i.operands[2])));
}
template <typename Function>
void Predicate(Warp& warp, const Instruction& i, uint32_t mask) {
  PutMask(warp, i.operands[0], mask,
          Function::Apply(GetMask(warp, i.operands[1])));
}

// Splits a register into halves or joins them. `Half` lies in a word.
template <typename Whole, typename Half>
void Split(Warp& warp, const Instruction& i, uint32_t mask) {
  std::byte* const low = Destination(warp, i.operands[0]);
  std::byte* const high = Destination(warp, i.operands[1]);
  const std::byte* const from = Source(warp, i.operands[2]);
  ForVectors(mask, [&](int lane) {
    const Whole whole = Get<Whole>(from, lane);
    Put<Half>(low, lane, static_cast<Half>(whole));
    Put<Half>(high, lane, static_cast<Half>(whole >> (8 * sizeof(Half))));
  });
}
template <typename Whole, typename Half>
void Join(Warp& warp, const Instruction& i, uint32_t mask) {
  std::byte* const to = Destination(warp, i.operands[0]);
  const std::byte* const from_low = Source(warp, i.operands[1]);
  const std::byte* const from_high = Source(warp, i.operands[2]);
  ForVectors(mask, [&](int lane) {
    const Whole low = Get<Half>(from_low, lane);
    const Whole high = Get<Half>(from_high, lane);
    Put<Whole>(to, lane, low | high << (8 * sizeof(Half)));
  });
}

template <typename T>
void AddArithmetic(const std::string& type, OperationTable* table) {
  OperationTable& t = *table;
  t["add." + type] = BinaryOperation<T, Add>();
  t["sub." + type] = BinaryOperation<T, Subtract>();
  t["mul.lo." + type] = BinaryOperation<T, MultiplyLow>();
  t["mul.hi." + type] = BinaryOperation<T, MultiplyHigh>();
  t["div." + type] = BinaryOperation<T, Divide>();
  t["rem." + type] = BinaryOperation<T, Remainder>();
  t["min." + type] = BinaryOperation<T, Minimum>();
  t["max." + type] = BinaryOperation<T, Maximum>();
  const char letter = Letter<T>();
  t["mad.lo." + type] = {Ternary<T, T, T, T, MultiplyAdd>,
                         std::string(4, letter)};
  t["shr." + type] = {Binary<T, T, uint32_t, ShiftRight>,
                      {letter, letter, 'w'}};
  if constexpr (std::is_signed_v<T>) {
    t["neg." + type] = UnaryOperation<T, Negate>();
    t["abs." + type] = UnaryOperation<T, Absolute>();
  }
}

template <typename T, typename Wide>
void AddWide(const std::string& type, OperationTable* table) {
  const std::string to(1, Letter<Wide>());
  (*table)["mul.wide." + type] = {Binary<Wide, T, T, MultiplyWide<Wide>>,
                                  to + "ww"};
  (*table)["mad.wide." + type] = {Ternary<Wide, T, T, Wide, MultiplyWide<Wide>>,
                                  to + "ww" + to};
}

template <typename T>
void AddBits(const std::string& type, OperationTable* table) {
  OperationTable& t = *table;
  t["and." + type] = BinaryOperation<T, And>();
  t["or." + type] = BinaryOperation<T, Or>();
  t["xor." + type] = BinaryOperation<T, Xor>();
  t["not." + type] = UnaryOperation<T, Not>();
  const char letter = Letter<T>();
  t["shl." + type] = {Binary<T, T, uint32_t, ShiftLeft>, {letter, letter, 'w'}};
}

template <typename T>
void AddMoves(const std::string& bits, OperationTable* table) {
  const char letter = Letter<T>();
  for (const char* kind : {"b", "u", "s", "f"}) {
    (*table)["mov." + (kind + bits)] = UnaryOperation<T, Copy>();
    (*table)["selp." + (kind + bits)] = {Select<T>,
                                         {letter, letter, letter, 'p'}};
  }
  (*table)["cvta.to.global.u" + bits] = UnaryOperation<T, Copy>();
}

void AddPredicates(OperationTable* table) {
  OperationTable& t = *table;
  t["and.pred"] = {Predicates<And>, "ppp"};
  t["or.pred"] = {Predicates<Or>, "ppp"};
  t["xor.pred"] = {Predicates<Xor>, "ppp"};
  t["not.pred"] = {Predicate<Not>, "pp"};
  t["mov.pred"] = {Predicate<Copy>, "pp"};
}

void AddWordOperations(OperationTable* table) {
  OperationTable& t = *table;
  t["brev.b32"] = UnaryOperation<uint32_t, ReverseBits>();
  t["popc.b32"] = UnaryOperation<uint32_t, CountBits>();
  t["clz.b32"] = UnaryOperation<uint32_t, CountLeadingZeros>();
  t["bfind.u32"] = UnaryOperation<uint32_t, FindHighest>();
  t["bfind.shiftamt.u32"] = UnaryOperation<uint32_t, FindShift>();
  using Word = uint32_t;
  t["prmt.b32"] = {Ternary<Word, Word, Word, Word, PermuteBytes>, "wwww"};
  t["dp2a.lo.u32.u32"] = {Ternary<Word, Word, Word, Word, DotOfTwo<0>>, "wwww"};
  t["dp2a.hi.u32.u32"] = {Ternary<Word, Word, Word, Word, DotOfTwo<2>>, "wwww"};
  t["bfe.u32"] = {Ternary<Word, Word, Word, Word, ExtractBits<Word>>, "wwww"};
  t["bfi.b32"] = {InsertBits<uint32_t>, "wwwww"};
  t["bfi.b64"] = {InsertBits<uint64_t>, "dddww"};
  t["shf.l.wrap.b32"] = {Ternary<Word, Word, Word, Word, Funnel<true, true>>,
                         "wwww"};
  t["shf.r.wrap.b32"] = {Ternary<Word, Word, Word, Word, Funnel<false, true>>,
                         "wwww"};
  t["shf.l.clamp.b32"] = {Ternary<Word, Word, Word, Word, Funnel<true, false>>,
                          "wwww"};
  t["shf.r.clamp.b32"] = {Ternary<Word, Word, Word, Word, Funnel<false, false>>,
                          "wwww"};
  t["mov.split.b32"] = {Split<uint32_t, uint16_t>, "vw", Flow::kPlain, 2};
  t["mov.split.b64"] = {Split<uint64_t, uint32_t>, "vd", Flow::kPlain, 2};
  t["mov.join.b32"] = {Join<uint32_t, uint16_t>, "wv", Flow::kPlain, 2};
  t["mov.join.b64"] = {Join<uint64_t, uint32_t>, "dv", Flow::kPlain, 2};
}

}  // namespace

void AddIntegerOperations(OperationTable* table) {
  AddArithmetic<int16_t>("s16", table);
  AddArithmetic<uint16_t>("u16", table);
  AddArithmetic<int32_t>("s32", table);
  AddArithmetic<uint32_t>("u32", table);
  AddArithmetic<int64_t>("s64", table);
  AddArithmetic<uint64_t>("u64", table);
  AddWide<int16_t, int32_t>("s16", table);
  AddWide<uint16_t, uint32_t>("u16", table);
  AddWide<int32_t, int64_t>("s32", table);
  AddWide<uint32_t, uint64_t>("u32", table);
  AddBits<uint16_t>("b16", table);
  AddBits<uint32_t>("b32", table);
  AddBits<uint64_t>("b64", table);
  AddMoves<uint16_t>("16", table);
  AddMoves<uint32_t>("32", table);
  AddMoves<uint64_t>("64", table);
  AddPredicates(table);
  AddWordOperations(table);
}

}  // namespace kiln::ptx
