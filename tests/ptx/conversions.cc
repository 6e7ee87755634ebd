// cvt (PTX ISA, section "Data Movement and Conversion").
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/ptx/half.h"
#include "tests/ptx/lanes.h"

namespace kiln::ptx {
namespace {

template <typename To>
struct Convert {
  template <typename T>
  static To Apply(T a) {
    return static_cast<To>(a);
  }
};

// Of the low bits of a register that is wider than its type.
template <typename To, typename From>
struct ConvertLow {
  static To Apply(uint64_t a) { return static_cast<To>(static_cast<From>(a)); }
};

// Into [0, 1]; a NaN becomes 0.
struct Saturate {
  static float Apply(float a) { return a > 0 ? std::min(a, 1.f) : 0.f; }
};

struct HalfFromFloat {
  static uint16_t Apply(float a) { return HalfOf(a); }
};
struct FloatFromHalf {
  static float Apply(uint16_t a) { return FloatOfHalf(a); }
};
struct FloatFromBFloat16 {
  static float Apply(uint16_t a) { return FloatOfBFloat16(a); }
};
struct BFloat16FromFloat {
  static uint16_t Apply(float a) { return BFloat16Of(a); }
};
// The first operand goes to the upper half.
struct HalvesFromFloats {
  static uint32_t Apply(float a, float b) {
    return static_cast<uint32_t>(HalfOf(a)) << 16 | HalfOf(b);
  }
};
struct BFloat16sFromFloats {
  static uint32_t Apply(float a, float b) {
    return static_cast<uint32_t>(BFloat16Of(a)) << 16 | BFloat16Of(b);
  }
};

// Towards a rounding, saturating; a NaN becomes 0.
enum class Towards : uint8_t { kZero, kNearest, kDown, kUp };

template <typename To, Towards kTowards>
struct IntegerFromFloat {
  static To Apply(float a) {
    if (a != a) return 0;
    const float rounded = kTowards == Towards::kZero      ? std::trunc(a)
                          : kTowards == Towards::kNearest ? std::nearbyint(a)
                          : kTowards == Towards::kDown    ? std::floor(a)
                                                          : std::ceil(a);
    constexpr To kMin = std::numeric_limits<To>::min();
    constexpr To kMax = std::numeric_limits<To>::max();
    if (rounded <= static_cast<float>(kMin)) return kMin;
    if (rounded >= static_cast<float>(kMax)) return kMax;
    return static_cast<To>(rounded);
  }
};

template <typename To, typename From>
void AddInteger(const std::string& to, const std::string& from,
                OperationTable* table) {
  (*table)["cvt." + to + "." + from] = {Unary<To, From, Convert<To>>,
                                        {Letter<To>(), Letter<From>()}};
  if (sizeof(From) == sizeof(uint64_t)) return;
  (*table)["cvt.low." + to + "." + from] = {
      Unary<To, uint64_t, ConvertLow<To, From>>, {Letter<To>(), 'd'}};
}

template <typename To>
void AddIntegersTo(const std::string& to, OperationTable* table) {
  AddInteger<To, int8_t>(to, "s8", table);
  AddInteger<To, uint8_t>(to, "u8", table);
  AddInteger<To, int16_t>(to, "s16", table);
  AddInteger<To, uint16_t>(to, "u16", table);
  AddInteger<To, int32_t>(to, "s32", table);
  AddInteger<To, uint32_t>(to, "u32", table);
  AddInteger<To, int64_t>(to, "s64", table);
  AddInteger<To, uint64_t>(to, "u64", table);
}

template <typename T>
void AddIntegerAndFloat(const std::string& type, OperationTable* table) {
  OperationTable& t = *table;
  t["cvt.rn.f32." + type] = {Unary<float, T, Convert<float>>,
                             {'w', Letter<T>()}};
  const std::string operands = {Letter<T>(), 'w'};
  t["cvt.rzi." + type + ".f32"] = {
      Unary<T, float, IntegerFromFloat<T, Towards::kZero>>, operands};
  t["cvt.rni." + type + ".f32"] = {
      Unary<T, float, IntegerFromFloat<T, Towards::kNearest>>, operands};
  t["cvt.rmi." + type + ".f32"] = {
      Unary<T, float, IntegerFromFloat<T, Towards::kDown>>, operands};
  t["cvt.rpi." + type + ".f32"] = {
      Unary<T, float, IntegerFromFloat<T, Towards::kUp>>, operands};
}

}  // namespace

void AddConversions(OperationTable* table) {
  AddIntegersTo<int8_t>("s8", table);
  AddIntegersTo<uint8_t>("u8", table);
  AddIntegersTo<int16_t>("s16", table);
  AddIntegersTo<uint16_t>("u16", table);
  AddIntegersTo<int32_t>("s32", table);
  AddIntegersTo<uint32_t>("u32", table);
  AddIntegersTo<int64_t>("s64", table);
  AddIntegersTo<uint64_t>("u64", table);
  AddIntegerAndFloat<int32_t>("s32", table);
  AddIntegerAndFloat<uint32_t>("u32", table);
  AddIntegerAndFloat<int64_t>("s64", table);
  AddIntegerAndFloat<uint64_t>("u64", table);
  OperationTable& t = *table;
  t["cvt.sat.f32.f32"] = UnaryOperation<float, Saturate>();
  t["cvt.f32.f16"] = {Unary<float, uint16_t, FloatFromHalf>, "ww"};
  t["cvt.f32.bf16"] = {Unary<float, uint16_t, FloatFromBFloat16>, "ww"};
  t["cvt.rn.f16.f32"] = {Unary<uint16_t, float, HalfFromFloat>, "ww"};
  t["cvt.rn.bf16.f32"] = {Unary<uint16_t, float, BFloat16FromFloat>, "ww"};
  t["cvt.rn.f16x2.f32"] = {Binary<uint32_t, float, float, HalvesFromFloats>,
                           "www"};
  t["cvt.rn.bf16x2.f32"] = {Binary<uint32_t, float, float, BFloat16sFromFloats>,
                            "www"};
}

}  // namespace kiln::ptx
