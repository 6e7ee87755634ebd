#include "tests/ptx/random_conv_plans.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "tests/jit/plan/plan_generator.h"

namespace kiln::ptx {
namespace {

// So that the interpreter takes a fraction of a second.
constexpr int64_t kMaxProducts = 20'000'000;
constexpr int64_t kMaxExtent = 48;

class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {}

  std::string Run() && {
    const std::string grade = random_.OneIn(3) ? "grade tf32\n" : "";
    AddConvolution();
    AddPointwise();
    AddTail();
    return fmt::format("{}{}{}output {}\n", grade, inputs_, ops_, value_);
  }

 private:
  // A parameter of f32; returns its name.
  std::string Param(const std::string& dims) {
    const std::string name = fmt::format("p{}", params_++);
    inputs_ += fmt::format("param {}: f32[{}]\n", name, dims);
    return name;
  }

  // Makes a call on the last value the last value.
  void Add(const std::string& call) {
    value_ = fmt::format("v{}", values_++);
    ops_ += fmt::format("{} = {}\n", value_, call);
  }
  void AddUnary(const std::string& op) { Add(op + "(" + value_ + ")"); }

  // Also padded beyond the filter, where an ordinary one may be.
  ConvAxis AnyAxis(bool transposed) {
    for (;;) {
      ConvAxis axis;
      axis.input = random_.Pick({random_.Int(1, 12), random_.Int(8, 36)});
      axis.kernel = random_.Int(1, 5);
      axis.stride = random_.Pick({1, 1, 2, 3});
      axis.dilation = random_.Pick({1, 1, 1, 1, 2, 3});
      axis.padding = transposed ? random_.Int(0, axis.reach() - 1)
                                : random_.Int(0, axis.kernel + 1);
      const int64_t output = axis.Output(transposed);
      if (output > 0 && output <= kMaxExtent) return axis;
    }
  }

  std::pair<std::string, std::string> AnyTypes() {
    using Types = std::pair<std::string, std::string>;
    return random_.Pick<Types>({{"f32", "f32"},
                                {"f32", "f32"},
                                {"f32", "f32"},
                                {"f16", "f16"},
                                {"bf16", "bf16"},
                                {"f32", "f16"},
                                {"f16", "f32"}});
  }

  void AddConvolution() {
    const bool transposed = random_.OneIn(4);
    const int64_t groups = random_.Pick({1, 1, 1, 1, 2, 3});
    const int64_t of_group =
        random_.Pick({random_.Int(1, 4), random_.Int(4, 24 / groups)});
    const int64_t outputs =
        groups * random_.Pick<int64_t>({1, 4, 8, random_.Int(1, 24), 64, 80});
    std::array<ConvAxis, 2> axes;
    do {
      axes = {AnyAxis(transposed), AnyAxis(transposed)};
      dims_ = {random_.Pick({1, 1, 2, 3, 8, 40}), outputs,
               axes[0].Output(transposed), axes[1].Output(transposed)};
    } while (Elements() * of_group * axes[0].kernel * axes[1].kernel >
             kMaxProducts);
    const auto [input_type, weight_type] = AnyTypes();
    const int64_t inputs = groups * of_group;
    inputs_ += fmt::format("input x: {}[{},{},{},{}]\n", input_type, dims_[0],
                           inputs, axes[0].input, axes[1].input);
    inputs_ += fmt::format("param w: {}[{},{},{},{}]\n", weight_type,
                           transposed ? inputs : outputs,
                           transposed ? outputs / groups : of_group,
                           axes[0].kernel, axes[1].kernel);
    const std::string bias =
        random_.OneIn(2) ? ", " + Param(fmt::to_string(outputs)) : "";
    Add(fmt::format(
        "{}(x, w{}, stride=[{},{}], padding=[{},{}], "
        "dilation=[{},{}], groups={})",
        transposed ? "conv_transpose2d" : "conv2d", bias, axes[0].stride,
        axes[1].stride, axes[0].padding, axes[1].padding, axes[0].dilation,
        axes[1].dilation, groups));
  }

  int64_t Elements() const { return dims_[0] * dims_[1] * dims_[2] * dims_[3]; }

  void AddActivation() {
    AddUnary(random_.Pick({"relu", "gelu", "tanh", "sigmoid", "hardswish"}));
  }

  // What leaves the extents as they are.
  void AddPointwise() {
    switch (random_.Int(0, 4)) {
      case 0:
        return AddActivation();
      case 1:
        return AddScale();
      case 2:
        return Add(fmt::format(
            "add({}, {})", value_,
            Param(fmt::format("{},{},{}", dims_[1], dims_[2], dims_[3]))));
      default:
        return;
    }
  }

  // By channel; a pooling commutes with each of these.
  void AddScale() {
    const std::string scale = Param(fmt::format("{},1,1", dims_[1]));
    Add(fmt::format(fmt::runtime(random_.Pick(
                        {"mul({}, {})", "sub({1}, {0})", "add({}, {})"})),
                    value_, scale));
  }

  // One image or channel with several others, so that there are more.
  void AddBroadcast() {
    std::array<int64_t, 2> wide = {dims_[0], dims_[1]};
    if (wide[0] > 1 && wide[1] > 1) return;
    for (size_t i = 0; i < wide.size(); ++i) {
      if (wide[i] == 1) wide[i] = random_.Int(2, 5);
    }
    Add(fmt::format("mul({}, {})", value_,
                    Param(fmt::format("{},{},1,1", wide[0], wide[1]))));
    std::copy(wide.begin(), wide.end(), dims_.begin());
  }

  void AddNorm() {
    std::vector<int64_t> divisors;
    for (int64_t i = 1; i <= dims_[1]; ++i) {
      // One element alone has no deviation.
      const bool is_one = dims_[1] / i * dims_[2] * dims_[3] == 1;
      if (dims_[1] % i == 0 && !is_one) divisors.push_back(i);
    }
    if (divisors.empty()) return;
    const int64_t groups =
        divisors[random_.Int(0, static_cast<int64_t>(divisors.size()) - 1)];
    std::string operands = value_;
    if (random_.OneIn(2)) {
      const std::string weight = Param(fmt::to_string(dims_[1]));
      operands += ", " + weight + ", " + Param(fmt::to_string(dims_[1]));
    }
    Add(fmt::format("group_norm({}, num_groups={})", operands, groups));
  }

  void AddPooling() {
    std::array<int64_t, 2> kernel;
    for (size_t i = 0; i < 2; ++i) {
      kernel[i] = random_.Int(1, std::min<int64_t>(dims_[2 + i], 4));
    }
    std::string more;
    if (random_.OneIn(2)) {
      const auto step = [&](int64_t size) {
        return random_.Int((size + 1) / 2, size);
      };
      more = fmt::format(", stride=[{},{}], padding=[{},{}]{}", step(kernel[0]),
                         step(kernel[1]), random_.Int(0, kernel[0] / 2),
                         random_.Int(0, kernel[1] / 2),
                         random_.OneIn(2) ? ", ceil_mode=true" : "");
    }
    Add(fmt::format("{}({}, kernel_size=[{},{}]{})",
                    random_.Pick({"max_pool2d", "avg_pool2d"}), value_,
                    kernel[0], kernel[1], more));
  }

  void AddReduction(const std::string& dim) {
    const char* const op =
        random_.Pick({"sum", "mean", "amax", "amin", "logsumexp"});
    Add(fmt::format("{}({}, dim={}{})", op, value_, dim,
                    random_.OneIn(2) ? ", keepdim=true" : ""));
  }

  void AddTail() {
    switch (random_.Int(0, 8)) {
      case 0:
        return AddPooling();
      case 1:
        return AddReduction("[2,3]");
      case 2:
        return AddReduction("1");
      case 3:
        AddNorm();
        return AddActivation();
      case 4:
        // Sums of what is normalised would be nothing but rounding.
        AddNorm();
        AddUnary(random_.Pick({"relu", "sigmoid"}));
        return AddReduction("1");
      default:
        AddNorm();
        if (random_.OneIn(2)) AddScale();
        if (random_.OneIn(2)) AddBroadcast();
        return AddPooling();
    }
  }

  TestRandom random_;
  std::string inputs_;
  std::string ops_;
  std::string value_;                           // the last
  std::array<int64_t, 4> dims_ = {1, 1, 1, 1};  // of it, before the tail
  int params_ = 0;
  int values_ = 0;
};

}  // namespace

std::string RandomConvPlan(uint64_t seed) { return Writer(seed).Run(); }

}  // namespace kiln::ptx
