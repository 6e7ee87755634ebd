#include "jit/plan/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "jit/plan/op_table.h"
#include "jit/plan/reference_convert.h"
#include "jit/plan/reference_ops.h"
#include "jit/plan/rounded_values.h"
#include "jit/plan/validate.h"

namespace kiln {
namespace {

using Sink = std::function<void(size_t output, const ReferenceTensor&)>;

// Elements per range of the conversions: large enough to hide the cost of a
// range, small enough to notice a cancellation within a millisecond.
constexpr int64_t kConvertGrain = int64_t{1} << 16;

absl::Status OutOfMemory(int64_t needed_bytes, int64_t limit_bytes) {
  return absl::ResourceExhaustedError(fmt::format(
      "The reference evaluation does not fit in memory (got {} bytes alive at "
      "one time, allowed: {}).",
      needed_bytes, limit_bytes));
}

bool Compute(const Op& op, ReferenceOperands operands,
             const ReferenceWorkers& workers, ReferenceTensor* result) {
  switch (FindOp(op.kind)->op_class) {
    case OpClass::kConv:
      return ReferenceConv(op, operands, workers, result);
    case OpClass::kConvTranspose:
      return ReferenceConvTranspose(op, operands, workers, result);
    case OpClass::kGroupNorm:
      return ReferenceGroupNorm(op, operands, workers, result);
    case OpClass::kBatchNorm:
      return ReferenceBatchNorm(op, operands, workers, result);
    case OpClass::kPool:
      return ReferencePool(op, operands, workers, result);
    case OpClass::kReduce:
      return ReferenceReduce(op, operands, workers, result);
    case OpClass::kSoftmax:
      return ReferenceSoftmax(op, operands, workers, result);
    case OpClass::kUnary:
      return ReferenceUnary(op, operands, workers, result);
    case OpClass::kBinary:
      return ReferenceBinary(op, operands, workers, result);
    case OpClass::kCast:
      return ReferenceCast(op, operands, workers, result);
  }
  return false;
}

// One evaluation of one valid plan. A value exists from the first op that
// uses it, or defines it, to the last that uses it.
class Evaluation {
 public:
  Evaluation(const Plan& plan, std::vector<TensorDesc> descs,
             std::span<const void* const> inputs,
             const std::function<bool()>& cancelled, int64_t limit_bytes)
      : plan_(plan),
        descs_(std::move(descs)),
        inputs_(inputs),
        workers_(cancelled),
        limit_bytes_(limit_bytes),
        values_(descs_.size()),
        last_use_(LastUses()),
        rounded_(RoundedValues(plan, descs_)) {}

  absl::Status Run(const Sink& sink) {
    if (const int64_t peak = PeakBytes(); peak > limit_bytes_) {
      return OutOfMemory(peak, limit_bytes_);
    }
    for (size_t i = 0; i < plan_.ops.size(); ++i) {
      if (last_use_[ResultOf(plan_, i).index] == kUnused) continue;
      if (absl::Status s = RunOp(i); !s.ok()) return s;
      for (size_t value : DeadAfter(i)) values_[value].data.reset();
    }
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const ValueId value = plan_.outputs[i].value;
      if (absl::Status s = Load(value); !s.ok()) return s;
      sink(i, values_[value.index]);
    }
    return absl::OkStatus();
  }

  const ReferenceWorkers& workers() const { return workers_; }

 private:
  static constexpr size_t kUnused = 0;
  static constexpr size_t kOutput = ~size_t{0};

  // Per value: 1 + the index of the last op that uses it and is needed itself.
  std::vector<size_t> LastUses() const {
    std::vector<size_t> last(descs_.size(), kUnused);
    for (const PlanOutput& output : plan_.outputs) {
      last[output.value.index] = kOutput;
    }
    for (size_t i = plan_.ops.size(); i-- > 0;) {
      if (last[ResultOf(plan_, i).index] == kUnused) continue;
      for (const Operand& operand : plan_.ops[i].operands) {
        const auto* value = std::get_if<ValueId>(&operand);
        if (value == nullptr) continue;
        last[value->index] = std::max(last[value->index], i + 1);
      }
    }
    return last;
  }

  absl::Status RunOp(size_t index) {
    const Op& op = plan_.ops[index];
    std::vector<ReferenceTensor> constants;
    constants.reserve(op.operands.size());  // pointers to entries stay good
    std::vector<const ReferenceTensor*> operands;
    for (const Operand& operand : op.operands) {
      if (const auto* value = std::get_if<ValueId>(&operand)) {
        if (absl::Status s = Load(*value); !s.ok()) return s;
        operands.push_back(&values_[value->index]);
      } else if (const float* constant = std::get_if<float>(&operand)) {
        constants.push_back({{}, std::make_unique<double[]>(1)});
        constants.back().data[0] = *constant;
        operands.push_back(&constants.back());
      } else {
        operands.push_back(nullptr);
      }
    }
    const ValueId result = ResultOf(plan_, index);
    if (absl::Status s = Allocate(result); !s.ok()) return s;
    if (Compute(op, operands, workers_, &values_[result.index]) &&
        (!rounded_[result.index] || Round(result))) {
      return absl::OkStatus();
    }
    return absl::CancelledError("The reference evaluation is cancelled.");
  }

  // To the value's nominal type; false once cancelled.
  bool Round(ValueId value) {
    const DataType type = descs_[value.index].dtype;
    double* const elements = values_[value.index].data.get();
    return workers_.Run(values_[value.index].size(), kConvertGrain,
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i) {
                            elements[i] = RoundTo(type, elements[i]);
                          }
                        });
  }

  // Values that op `index` is the last to use.
  std::vector<size_t> DeadAfter(size_t index) const {
    std::vector<size_t> dead;
    for (size_t i = 0; i < last_use_.size(); ++i) {
      if (last_use_[i] == index + 1) dead.push_back(i);
    }
    return dead;
  }

  // The most bytes that Run has allocated at one time.
  int64_t PeakBytes() const {
    std::vector<bool> alive(values_.size());
    int64_t live = 0;
    const auto add = [&](ValueId value) {
      if (!alive[value.index]) live += BytesOf(value.index);
      alive[value.index] = true;
    };
    int64_t peak = 0;
    for (size_t i = 0; i < plan_.ops.size(); ++i) {
      if (last_use_[ResultOf(plan_, i).index] == kUnused) continue;
      for (const Operand& operand : plan_.ops[i].operands) {
        if (const auto* value = std::get_if<ValueId>(&operand)) add(*value);
      }
      add(ResultOf(plan_, i));
      peak = std::max(peak, live);
      for (size_t value : DeadAfter(i)) live -= BytesOf(value);
    }
    for (const PlanOutput& output : plan_.outputs) add(output.value);
    return std::max(peak, live);
  }

  // Makes an input's elements doubles, unless that has been done.
  absl::Status Load(ValueId value) {
    ReferenceTensor& tensor = values_[value.index];
    if (tensor.data != nullptr) return absl::OkStatus();
    if (absl::Status s = Allocate(value); !s.ok()) return s;
    const DataType type = descs_[value.index].dtype;
    const auto* from = static_cast<const char*>(inputs_[value.index]);
    const auto convert = [&](int64_t begin, int64_t end) {
      ElementsToDouble(type, from + begin * ElementSize(type), end - begin,
                       tensor.data.get() + begin);
    };
    if (workers_.Run(tensor.size(), kConvertGrain, convert)) {
      return absl::OkStatus();
    }
    return absl::CancelledError("The reference evaluation is cancelled.");
  }

  absl::Status Allocate(ValueId value) {
    ReferenceTensor& tensor = values_[value.index];
    tensor.dims = descs_[value.index].dims;
    tensor.data.reset(new (std::nothrow) double[tensor.size()]);
    if (tensor.data != nullptr) return absl::OkStatus();
    return OutOfMemory(BytesOf(value.index), limit_bytes_);
  }

  int64_t BytesOf(size_t value) const {
    return NumElements(descs_[value].dims) *
           static_cast<int64_t>(sizeof(double));
  }

  const Plan& plan_;
  const std::vector<TensorDesc> descs_;
  const std::span<const void* const> inputs_;
  const ReferenceWorkers workers_;
  const int64_t limit_bytes_;
  std::vector<ReferenceTensor> values_;
  const std::vector<size_t> last_use_;
  const std::vector<bool> rounded_;
};

absl::Status CheckCounts(const Plan& plan, size_t inputs, size_t outputs) {
  if (inputs == plan.inputs.size() && outputs == plan.outputs.size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format(
      "The plan is given the wrong number of buffers (got {} inputs and {} "
      "outputs, allowed: {} and {}).",
      inputs, outputs, plan.inputs.size(), plan.outputs.size()));
}

}  // namespace

absl::Status EvaluateReference(const Plan& plan,
                               std::span<const void* const> inputs,
                               std::span<void* const> outputs,
                               const std::function<bool()>& cancelled,
                               int64_t memory_limit_bytes) {
  absl::StatusOr<std::vector<TensorDesc>> descs = ValidatePlan(plan);
  if (!descs.ok()) return descs.status();
  if (absl::Status s = CheckCounts(plan, inputs.size(), outputs.size());
      !s.ok()) {
    return s;
  }
  Evaluation evaluation(plan, *std::move(descs), inputs, cancelled,
                        memory_limit_bytes);
  bool complete = true;
  const auto round = [&](size_t output, const ReferenceTensor& value) {
    const DataType type = plan.outputs[output].dtype;
    auto* to = static_cast<char*>(outputs[output]);
    complete &= evaluation.workers().Run(
        value.size(), kConvertGrain, [&](int64_t begin, int64_t end) {
          ElementsFromDouble(type, value.data.get() + begin, end - begin,
                             to + begin * ElementSize(type));
        });
  };
  if (absl::Status s = evaluation.Run(round); !s.ok()) return s;
  if (complete) return absl::OkStatus();
  return absl::CancelledError("The reference evaluation is cancelled.");
}

absl::Status EvaluateReferenceToDouble(const Plan& plan,
                                       std::span<const void* const> inputs,
                                       std::span<double* const> outputs,
                                       int64_t memory_limit_bytes) {
  absl::StatusOr<std::vector<TensorDesc>> descs = ValidatePlan(plan);
  if (!descs.ok()) return descs.status();
  if (absl::Status s = CheckCounts(plan, inputs.size(), outputs.size());
      !s.ok()) {
    return s;
  }
  const std::function<bool()> never;
  Evaluation evaluation(plan, *std::move(descs), inputs, never,
                        memory_limit_bytes);
  return evaluation.Run([&](size_t output, const ReferenceTensor& value) {
    std::copy_n(value.data.get(), value.size(), outputs[output]);
  });
}

}  // namespace kiln
