#include "jit/compile/eager_launches.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jit/compile/eager_ops.h"
#include "jit/compile/lowered_plan.h"
#include "jit/compile/rounding.h"
#include "jit/compile/workspace.h"
#include "jit/plan/op_table.h"
#include "jit/plan/rounded_values.h"

namespace kiln {
namespace {

// Entries of the module, as in EagerSymbols.
enum class EagerKernel : uint8_t {
  kPointwise,
  kNormalize,
  kReduce,
  kMerge,
  kConv2d,
  kPool2d,
};

constexpr const char* kSymbols[] = {
    "kiln_eager_pointwise", "kiln_eager_normalize", "kiln_eager_reduce",
    "kiln_eager_merge",     "kiln_eager_conv2d",    "kiln_eager_pool2d"};

// For each multiprocessor, where threads go on to further elements.
constexpr int64_t kBlocksPerSm = 32;
constexpr int64_t kFloatBytes = 4;
constexpr int64_t kStateBytes = 4 * kFloatBytes;  // EagerState

// Where a tensor lies: in a slot, or in a buffer of the workspace.
struct Tensor {
  int slot = -1;
  int buffer = -1;
  DataType dtype = DataType::kF32;
};

// nullopt: an operand that is left out.
using Tensors = std::vector<std::optional<Tensor>>;

template <typename Parameters>
Arg Constant(const Parameters& parameters) {
  Arg arg;
  arg.kind = ArgKind::kConstant;
  arg.bytes.resize(sizeof(parameters));
  std::memcpy(arg.bytes.data(), &parameters, sizeof(parameters));
  return arg;
}

OpClass ClassOf(const Op& op) { return FindOp(op.kind)->op_class; }

bool IsPointwise(const Op& op) {
  const OpClass op_class = ClassOf(op);
  return op_class == OpClass::kUnary || op_class == OpClass::kBinary ||
         op_class == OpClass::kCast;
}

class EagerLaunches {
 public:
  EagerLaunches(const CanonicalPlan& plan, const Target& target)
      : plan_(plan.plan),
        values_(plan.values),
        target_(target),
        homes_(values_.size()),
        last_readers_(values_.size(), -1),
        rounded_(RoundedValues(plan.plan, plan.values)) {}

  Variant Make() && {
    const int num_inputs = static_cast<int>(plan_.inputs.size());
    FindLastReaders();
    for (int i = 0; i < num_inputs; ++i) {
      homes_[i] = {i, -1, plan_.inputs[i].desc.dtype};
      StoreOutputs(i);
    }
    for (op_ = 0; op_ < static_cast<int>(plan_.ops.size()); ++op_) {
      Run(plan_.ops[op_], num_inputs + op_);
      if (rounded_[num_inputs + op_]) Round(num_inputs + op_);
      StoreOutputs(num_inputs + op_);
    }
    return std::move(*this).Placed();
  }

 private:
  const Dims& DimsOf(int value) const { return values_[value].dims; }

  void FindLastReaders() {
    for (size_t i = 0; i < plan_.ops.size(); ++i) {
      for (const Operand& operand : plan_.ops[i].operands) {
        const int value = ValueOf(operand);
        if (value >= 0) last_readers_[value] = static_cast<int>(i);
      }
    }
  }

  // Memory.

  Tensor NewBuffer(int64_t size_bytes) {
    buffers_.push_back({-1, -1, size_bytes});
    return {-1, static_cast<int>(buffers_.size()) - 1, DataType::kF32};
  }

  Tensor NewFloats(const Dims& dims) {
    return NewBuffer(kFloatBytes * NumElements(dims));
  }

  int SlotOfOutput(size_t output) const {
    return static_cast<int>(plan_.inputs.size() + output);
  }

  // The output that an op's result can lie in: one that keeps it as it is, or
  // that rounds what nobody else reads, in the kernel that computes it.
  std::optional<Tensor> LentOutput(const Op& op, int value) const {
    if (rounded_[value]) return std::nullopt;
    std::optional<Tensor> lent;
    int outputs = 0;
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const PlanOutput& output = plan_.outputs[i];
      if (output.value.index != value) continue;
      ++outputs;
      if (output.dtype == DataType::kF32) {
        return Tensor{SlotOfOutput(i), -1, output.dtype};
      }
      lent = Tensor{SlotOfOutput(i), -1, output.dtype};
    }
    const bool is_only = outputs == 1 && last_readers_[value] < 0;
    return is_only && IsPointwise(op) ? lent : std::nullopt;
  }

  // Whether a result of extents `dims` may lie where the value does.
  bool IsReplaceable(int value, const Dims& dims) const {
    return homes_[value].buffer >= 0 && last_readers_[value] == op_ &&
           DimsOf(value) == dims;
  }

  // Where an op's result goes: into an output, in the place of the operand
  // `replaced`, or to new memory.
  Tensor NewHome(const Op& op, int value, int replaced = -1) {
    if (const auto lent = LentOutput(op, value)) return *lent;
    if (replaced >= 0) return homes_[replaced];
    return NewFloats(DimsOf(value));
  }

  // A value in f32: where it lies, or a copy, which is made once.
  Tensor Floats(int value) {
    if (homes_[value].dtype == DataType::kF32) return homes_[value];
    const auto [place, is_new] = floats_.try_emplace(value);
    if (is_new) {
      place->second = NewFloats(DimsOf(value));
      Copy(value, place->second);
    }
    return place->second;
  }

  std::optional<Tensor> FloatsOf(const Op& op, size_t operand) {
    if (operand >= op.operands.size()) return std::nullopt;
    const int value = ValueOf(op.operands[operand]);
    if (value < 0) return std::nullopt;
    return Floats(value);
  }

  // Launches.

  Arg ArgOf(const std::optional<Tensor>& tensor) {
    if (!tensor) return Constant(uint64_t{0});
    Arg arg;
    if (tensor->slot >= 0) {
      arg.slot = tensor->slot;
      return arg;
    }
    Lifetime& buffer = buffers_[tensor->buffer];
    buffer.last = static_cast<int>(steps_.size());
    if (buffer.first < 0) buffer.first = buffer.last;
    arg.kind = ArgKind::kWorkspace;
    arg.offset_bytes = tensor->buffer;  // until all buffers are known
    return arg;
  }

  template <typename Parameters>
  void Launch(EagerKernel kernel, const Parameters& parameters,
              const Tensors& tensors, int64_t blocks, int64_t splits = 1) {
    Step step;
    step.entry = static_cast<int>(kernel);
    step.grid = {static_cast<uint32_t>(blocks), static_cast<uint32_t>(splits),
                 1};
    step.block = {kEagerThreads, 1, 1};
    step.args.push_back(Constant(parameters));
    for (const auto& tensor : tensors) step.args.push_back(ArgOf(tensor));
    steps_.push_back(std::move(step));
  }

  // Blocks that share `count` elements.
  int64_t BlocksFor(int64_t count) const {
    return std::min(CeilDiv(count, kEagerThreads),
                    kBlocksPerSm * target_.sm_count);
  }

  void Copy(int value, const Tensor& to, DataType rounded_to = DataType::kF32) {
    Op copy;
    copy.kind = OpKind::kCast;
    copy.attributes = CastAttributes{rounded_to};
    EagerPointwise p = EagerPointwiseOf(copy, DimsOf(value));
    p.operands[0] =
        EagerOperandOf(DimsOf(value), homes_[value].dtype, DimsOf(value));
    p.result = EagerTypeOf(to.dtype);
    Launch(EagerKernel::kPointwise, p, {homes_[value], std::nullopt, to},
           BlocksFor(p.count));
  }

  // In place, to the type that a convolution takes it in.
  void Round(int value) { Copy(value, homes_[value], values_[value].dtype); }

  // Outputs other than the one that the value lies in.
  void StoreOutputs(int value) {
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const PlanOutput& output = plan_.outputs[i];
      if (output.value.index != value) continue;
      if (homes_[value].slot == SlotOfOutput(i)) continue;
      Copy(value, {SlotOfOutput(i), -1, output.dtype});
    }
  }

  void Run(const Op& op, int result) {
    switch (ClassOf(op)) {
      case OpClass::kConv:
      case OpClass::kConvTranspose:
        return RunConv2d(op, result);
      case OpClass::kGroupNorm:
      case OpClass::kBatchNorm:
      case OpClass::kSoftmax:
        return RunNormalize(op, result);
      case OpClass::kPool:
        return RunPool2d(op, result);
      case OpClass::kReduce:
        homes_[result] = NewHome(op, result);
        return RunReduce(op, homes_[result]);
      default:
        return RunPointwise(op, result);
    }
  }

  void RunConv2d(const Op& op, int result) {
    const EagerConv2d p =
        EagerConv2dOf(op, DimsOf(ValueOf(op.operands[0])),
                      DimsOf(ValueOf(op.operands[1])), DimsOf(result));
    homes_[result] = NewHome(op, result);
    Tensors tensors;
    for (size_t i = 0; i < 3; ++i) tensors.push_back(FloatsOf(op, i));
    tensors.push_back(homes_[result]);
    Launch(EagerKernel::kConv2d, p, tensors, CeilDiv(p.count, kEagerThreads));
  }

  void RunPool2d(const Op& op, int result) {
    const int input = ValueOf(op.operands[0]);
    const EagerPool2d p = EagerPool2dOf(op, DimsOf(input), DimsOf(result));
    homes_[result] = NewHome(op, result);
    Launch(EagerKernel::kPool2d, p, {Floats(input), homes_[result]},
           BlocksFor(p.count));
  }

  // Results, or pairs of statistics, of the op's input.
  void RunReduce(const Op& op, const Tensor& to) {
    const int input = ValueOf(op.operands[0]);
    const EagerReduce p = EagerReduceOf(op, DimsOf(input), target_);
    const Tensor partials = NewBuffer(kStateBytes * p.outputs * p.splits);
    Launch(EagerKernel::kReduce, p, {Floats(input), partials},
           CeilDiv(p.outputs * p.lanes, kEagerThreads), p.splits);
    Launch(EagerKernel::kMerge, p, {partials, to},
           CeilDiv(p.outputs, kEagerThreads));
  }

  void RunNormalize(const Op& op, int result) {
    const int input = ValueOf(op.operands[0]);
    const EagerNormalize p = EagerNormalizeOf(op, DimsOf(input));
    const bool is_batch = op.kind == OpKind::kBatchNorm;
    Tensors tensors = {Floats(input), std::nullopt};
    if (!is_batch) {
      const int64_t rows = EagerReduceOf(op, DimsOf(input), target_).outputs;
      const Tensor statistics = NewBuffer(2 * kFloatBytes * rows);
      RunReduce(op, statistics);
      tensors[1] = statistics;
    }
    const size_t affine = is_batch ? 3 : 1;
    tensors.push_back(is_batch ? FloatsOf(op, 1) : std::nullopt);
    tensors.push_back(is_batch ? FloatsOf(op, 2) : std::nullopt);
    tensors.push_back(FloatsOf(op, affine));
    tensors.push_back(FloatsOf(op, affine + 1));
    const bool is_replaceable = IsReplaceable(input, DimsOf(result));
    homes_[result] = NewHome(op, result, is_replaceable ? input : -1);
    tensors.push_back(homes_[result]);
    Launch(EagerKernel::kNormalize, p, tensors, BlocksFor(p.count));
  }

  void RunPointwise(const Op& op, int result) {
    EagerPointwise p = EagerPointwiseOf(op, DimsOf(result));
    Tensors tensors(2);
    int replaced = -1;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (const auto* number = std::get_if<float>(&op.operands[i])) {
        p.operands[i].number = *number;
        continue;
      }
      const int value = ValueOf(op.operands[i]);
      p.operands[i] =
          EagerOperandOf(DimsOf(value), homes_[value].dtype, DimsOf(result));
      tensors[i] = homes_[value];
      if (IsReplaceable(value, DimsOf(result))) replaced = value;
    }
    homes_[result] = NewHome(op, result, replaced);
    p.result = EagerTypeOf(homes_[result].dtype);
    tensors.push_back(homes_[result]);
    Launch(EagerKernel::kPointwise, p, tensors, BlocksFor(p.count));
  }

  Variant Placed() && {
    const WorkspaceLayout layout = LayOutWorkspace(buffers_);
    for (Step& step : steps_) {
      for (Arg& arg : step.args) {
        if (arg.kind != ArgKind::kWorkspace) continue;
        arg.offset_bytes = layout.offsets[arg.offset_bytes];
      }
    }
    Variant variant;
    variant.workspace_bytes = layout.size_bytes;
    variant.launch = std::move(steps_);
    return variant;
  }

  const Plan& plan_;
  const std::vector<TensorDesc>& values_;
  const Target& target_;
  int op_ = 0;                     // that is being launched
  std::vector<Tensor> homes_;      // of values
  std::vector<int> last_readers_;  // of values: ops, -1 for none
  std::vector<bool> rounded_;      // values, as soon as they are computed
  std::map<int, Tensor> floats_;   // of values whose homes have 16 bits
  std::vector<Lifetime> buffers_;
  std::vector<Step> steps_;
};

}  // namespace

std::span<const char* const> EagerSymbols() { return kSymbols; }

Variant MakeEagerLaunches(const CanonicalPlan& plan, const Target& target) {
  return EagerLaunches(plan, target).Make();
}

}  // namespace kiln
