// setp (PTX ISA, section "Comparison and Selection").
#include "tests/ptx/lanes.h"

namespace kiln::ptx {
namespace {

// Comparisons with a NaN: those of the C++ operators are ordered, but `ne`.
// `kUnordered`: true if one is a NaN.
enum class Order : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kNum, kNan };

template <typename T, Order kOrder, bool kUnordered>
bool Compare(T a, T b) {
  const bool has_nan = a != a || b != b;
  if (kOrder == Order::kNum) return !has_nan;
  if (kOrder == Order::kNan) return has_nan;
  if (has_nan) return kUnordered;
  if (kOrder == Order::kEq) return a == b;
  if (kOrder == Order::kNe) return a != b;
  if (kOrder == Order::kLt) return a < b;
  if (kOrder == Order::kLe) return a <= b;
  if (kOrder == Order::kGt) return a > b;
  return a >= b;
}

template <typename T, Order kOrder, bool kUnordered>
uint32_t CompareLanes(const Warp& warp, const Instruction& i, uint32_t mask) {
  const std::byte* const a = Source(warp, i.operands[1]);
  const std::byte* const b = Source(warp, i.operands[2]);
  uint32_t result = 0;
  ForVectors(mask, [&](int lane) {
    const bool holds =
        Compare<T, kOrder, kUnordered>(Get<T>(a, lane), Get<T>(b, lane));
    result |= static_cast<uint32_t>(holds) << lane;
  });
  return result;
}

enum class Combine : uint8_t { kNone, kAnd, kOr, kXor };

template <typename T, Order kOrder, bool kUnordered, Combine kCombine>
void SetPredicate(Warp& warp, const Instruction& i, uint32_t mask) {
  uint32_t result = CompareLanes<T, kOrder, kUnordered>(warp, i, mask);
  if constexpr (kCombine != Combine::kNone) {
    const uint32_t other = GetMask(warp, i.operands[3]);
    result = kCombine == Combine::kAnd  ? result & other
             : kCombine == Combine::kOr ? result | other
                                        : result ^ other;
  }
  PutMask(warp, i.operands[0], mask, result);
}

template <typename T, Order kOrder, bool kUnordered = false>
void AddOrder(const std::string& order, const std::string& type,
              OperationTable* table) {
  const std::string operands = {'p', Letter<T>(), Letter<T>()};
  const std::string name = "setp." + order + ".";
  OperationTable& t = *table;
  using enum Combine;
  t[name + type] = {SetPredicate<T, kOrder, kUnordered, kNone>, operands};
  t[name + "and." + type] = {SetPredicate<T, kOrder, kUnordered, kAnd>,
                             operands + "p"};
  t[name + "or." + type] = {SetPredicate<T, kOrder, kUnordered, kOr>,
                            operands + "p"};
  t[name + "xor." + type] = {SetPredicate<T, kOrder, kUnordered, kXor>,
                             operands + "p"};
}

template <typename T>
void AddEquality(const std::string& type, OperationTable* table) {
  AddOrder<T, Order::kEq>("eq", type, table);
  AddOrder<T, Order::kNe>("ne", type, table);
}

template <typename T>
void AddOrders(const std::string& type, OperationTable* table) {
  AddEquality<T>(type, table);
  AddOrder<T, Order::kLt>("lt", type, table);
  AddOrder<T, Order::kLe>("le", type, table);
  AddOrder<T, Order::kGt>("gt", type, table);
  AddOrder<T, Order::kGe>("ge", type, table);
}

template <typename T>
void AddUnsigned(const std::string& type, OperationTable* table) {
  AddOrders<T>(type, table);
  AddOrder<T, Order::kLt>("lo", type, table);
  AddOrder<T, Order::kLe>("ls", type, table);
  AddOrder<T, Order::kGt>("hi", type, table);
  AddOrder<T, Order::kGe>("hs", type, table);
}

}  // namespace

void AddComparisons(OperationTable* table) {
  AddEquality<uint16_t>("b16", table);
  AddEquality<uint32_t>("b32", table);
  AddEquality<uint64_t>("b64", table);
  AddOrders<int16_t>("s16", table);
  AddOrders<int32_t>("s32", table);
  AddOrders<int64_t>("s64", table);
  AddUnsigned<uint16_t>("u16", table);
  AddUnsigned<uint32_t>("u32", table);
  AddUnsigned<uint64_t>("u64", table);
  AddOrders<float>("f32", table);
  AddOrder<float, Order::kEq, true>("equ", "f32", table);
  AddOrder<float, Order::kNe, true>("neu", "f32", table);
  AddOrder<float, Order::kLt, true>("ltu", "f32", table);
  AddOrder<float, Order::kLe, true>("leu", "f32", table);
  AddOrder<float, Order::kGt, true>("gtu", "f32", table);
  AddOrder<float, Order::kGe, true>("geu", "f32", table);
  AddOrder<float, Order::kNum>("num", "f32", table);
  AddOrder<float, Order::kNan>("nan", "f32", table);
}

}  // namespace kiln::ptx
