#ifndef KILN_JIT_PLAN_OP_TABLE_H_
#define KILN_JIT_PLAN_OP_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "jit/plan/op.h"

namespace kiln {

// Ops that share a shape rule and a kernel template.
enum class OpClass : uint8_t {
  kConv,           // conv2d
  kConvTranspose,  // conv_transpose2d
  kGroupNorm,
  kBatchNorm,
  kPool,    // max_pool2d, avg_pool2d
  kReduce,  // sum, mean, amax, amin, logsumexp
  kSoftmax,
  kUnary,   // one element in, one out
  kBinary,  // broadcasts; takes constants
  kCast,
};

struct OperandInfo {
  std::string_view name;  // PyTorch's: "input", "weight", "other"
  bool optional = false;
};

// One row of the table of ops: what a kind is called and what it takes.
struct OpInfo {
  OpKind kind;
  std::string_view name;   // PyTorch's: "conv2d"
  std::string_view alias;  // a second name that text accepts; may be empty
  OpClass op_class;
  std::span<const OperandInfo> operands;
  size_t attributes;  // index in Attributes of the alternative it holds
};

// Every op, by ascending number.
std::span<const OpInfo> AllOps();

// The row of `kind`; nullptr for a number this build does not know.
const OpInfo* FindOp(OpKind kind);

// The row of a name or alias; nullptr if there is none.
const OpInfo* FindOpByName(std::string_view name);

// "conv2d"; "unknown" for a number this build does not know.
std::string_view OpName(OpKind kind);

// The alternative of Attributes that `info` asks for, with its defaults.
Attributes DefaultAttributes(const OpInfo& info);

// What field paths call alternative `index` of Attributes, as in the wire
// schema: "conv", "group_norm". "none" for monostate.
std::string_view AttributesFieldName(size_t index);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_OP_TABLE_H_
