// Longer than 400 lines because each rule that cuts plans has plans of its own.
#include "jit/compile/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/workspace.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/fastest_schedule.h"
#include "tests/jit/plan/plan_generator.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

const Target kTarget = {"sm_90a", 132};

Schedule ScheduleOf(std::string_view text) {
  return MakeSchedules(*Canonicalize(*ParsePlanText(text)), kTarget,
                       Room::kPlain)
      .front();
}

// "conv2d: + relu": anchor or nothing, prologue before, epilogue behind.
std::string ShapeOf(const Schedule& schedule) {
  std::string shape;
  const auto names = [&](const std::vector<int>& nodes) {
    std::string text;
    for (const int node : nodes) {
      text +=
          fmt::format("{} ", static_cast<int>(schedule.lowered.nodes[node].op));
    }
    return text;
  };
  for (const Kernel& kernel : schedule.kernels) {
    const int anchor = kernel.group.anchor;
    shape += fmt::format("[{}| {}| {}]", names(kernel.group.prologue),
                         anchor < 0 ? "" : names({anchor}),
                         names(kernel.group.epilogue));
  }
  return shape;
}

TEST(ScheduleTest, PointwiseOpsJoinTheKernelBeforeThem) {
  const Schedule schedule = ScheduleOf(R"(
input x: f32[1,4,8,8]
param w: f32[4,4,3,3]
y = conv2d(x, w)
r = relu(y)
t = tanh(r)
output t
)");
  EXPECT_EQ(ShapeOf(schedule), "[| 1 | 50 53 ]");
  EXPECT_EQ(schedule.workspace_bytes, 0);
}

TEST(ScheduleTest, PointwiseOpsBeforeAReductionJoinIt) {
  const Schedule schedule = ScheduleOf(R"(
input x: f32[4,64]
r = relu(x)
s = sum(r, dim=1)
output s
)");
  EXPECT_EQ(ShapeOf(schedule), "[50 | 30 | ]");
}

TEST(ScheduleTest, GroupNormIsStatisticsAndARest) {
  const Schedule schedule = ScheduleOf(R"(
input x: f32[2,8,4,4]
y = group_norm(x, num_groups=2)
r = relu(y)
output r
)");
  EXPECT_EQ(ShapeOf(schedule), "[| 10 | ][| | 10 50 ]");
  EXPECT_EQ(schedule.workspace_bytes, 512);  // mean and rstd
}

TEST(ScheduleTest, ResidualAcrossABarrierIsMaterialised) {
  const Schedule schedule = ScheduleOf(R"(
input x: f32[2,8,14,14]
param w: f32[8,8,3,3]
y = conv2d(x, w, padding=1)
z = group_norm(y, num_groups=2)
a = add(y, z)
l = logsumexp(a, dim=1)
output l
)");
  EXPECT_EQ(ShapeOf(schedule), "[| 1 | ][| 10 | ][10 80 | 34 | ]");
}

// Of windows that overlap, what is computed again must take less than memory.
TEST(ScheduleTest, PoolingTakesAPrologueThatCostsLessThanAKernel) {
  const auto with = [](const char* x, const char* op, int size, int stride) {
    return ShapeOf(ScheduleOf(fmt::format(R"(
input x: f32[{}]
t = {}
p = max_pool2d(t, kernel_size={}, stride={})
output p
)",
                                          x, op, size, stride)));
  };
  const char* const image = "16,32,112,112";
  EXPECT_EQ(with(image, "tanh(x)", 2, 2), "[53 | 20 | ]");
  EXPECT_EQ(with(image, "tanh(x)", 3, 2), "[53 | 20 | ]");
  EXPECT_EQ(with(image, "tanh(x)", 5, 1), "[| | 53 ][| 20 | ]");
  EXPECT_EQ(with(image, "neg(x)", 5, 1), "[64 | 20 | ]");
  EXPECT_EQ(with("1,2,12,12", "tanh(x)", 5, 1), "[53 | 20 | ]");
  // A kernel of its own keeps rows, and reads them once.
  EXPECT_EQ(with(image, "softmax(x, dim=3)", 3, 2),
            "[| 35 | ][| | 35 ][| 20 | ]");
}

// Each further tensor is loaded as often.
TEST(ScheduleTest, PoolingTakesAPrologueOfFewTensors) {
  const auto with = [](const char* ops) {
    return ShapeOf(ScheduleOf(fmt::format(R"(
input x: f32[16,32,112,112]
input z: f32[16,32,112,112]
input u: f32[16,32,112,112]
{}
p = max_pool2d(t, kernel_size=5, stride=1)
output p
)",
                                          ops)));
  };
  EXPECT_EQ(with("t = add(x, z)"), "[80 | 20 | ]");
  EXPECT_EQ(with("a = add(x, z)\nt = add(a, u)"), "[| | 80 80 ][| 20 | ]");
}

// Also behind ops that are more than a few but short.
TEST(ScheduleTest, PoolingHasRowsInFlightBehindShortOperations) {
  const auto unit = [](const std::string& ops) {
    return LastUnitOf(Fastest(fmt::format(R"(
input x: f32[16,64,57,57]
a = relu(x)
b = mul(a, 2.0)
c = add(b, 0.5)
{}
p = avg_pool2d(t, kernel_size=2)
output p
)",
                                          ops)));
  };
  EXPECT_THAT(unit("t = clamp(c, min=0, max=1)"), HasSubstr("kRowsAtOnce = 2"));
  EXPECT_THAT(unit("d = tanh(c)\ne = silu(d)\nf = mish(e)\nt = gelu(f)"),
              HasSubstr("kRowsAtOnce = 1"));
}

TEST(ScheduleTest, PoolingOfASmallTensorComputesShortOperationsAgain) {
  EXPECT_EQ(ShapeOf(ScheduleOf(R"(
input x: bf16[2,48,32,32]
input z: bf16[2,48,32,32]
a = add(x, z)
s = softmax(a, dim=2)
p = avg_pool2d(s, kernel_size=2)
output p
)")),
            "[80 | 35 | ][80 35 | 21 | ]");
}

TEST(ScheduleTest, ShortOperationsRunInEachKernelThatNeedsThem) {
  const auto with = [](std::string_view op) {
    return ScheduleOf(fmt::format(R"(
input x: f16[8,16,32,32]
m = mean(x, dim=[0,2,3], keepdim=true)
d = sub(x, m)
{}
v = mean(q, dim=[0,2,3], keepdim=true)
y = mul(d, v)
output y
)",
                                  op));
  };
  const Schedule squares = with("q = mul(d, d)");
  EXPECT_EQ(ShapeOf(squares), "[| 31 | ][81 82 | 31 | ][| | 81 82 ]");
  EXPECT_EQ(squares.kernels[1].stores.size(), 1u);
  EXPECT_EQ(squares.kernels[2].stores.size(), 1u);
  // Special functions are not short.
  EXPECT_EQ(ShapeOf(with("q = exp(d)")),
            "[| 31 | ][| | 81 65 ][| 31 | ][| | 82 ]");
}

TEST(ScheduleTest, ShortOperationsRunOnceWhereTheyReadMoreThanTheyStore) {
  const auto of = [](std::string_view type, int images) {
    return ShapeOf(ScheduleOf(fmt::format(R"(
input a: {0}[{1},16,32,32]
input b: {0}[{1},16,32,32]
input c: {0}[{1},16,32,32]
t = add(a, b)
s = add(t, c)
m = amax(s, dim=[0,2,3], keepdim=true)
n = amin(s, dim=[0,2,3], keepdim=true)
l = add(m, n)
y = sub(s, l)
output y
)",
                                          type, images)));
  };
  EXPECT_EQ(of("f32", 128), "[| | 80 80 ][| 32 | ][| 33 | 80 ][| | 81 ]");
  const char* const in_each =
      "[80 80 | 32 | ][80 80 | 33 | 80 ][| | 80 80 81 ]";
  EXPECT_EQ(of("f16", 128), in_each);
  // Of a small tensor a launch takes longer.
  EXPECT_EQ(of("f32", 4), in_each);
}

TEST(ScheduleTest, AnF16OutputThatIsUsedAgainKeepsAnUnroundedCopy) {
  const Schedule schedule = ScheduleOf(R"(
input x: f32[4,64]
t = tanh(x)
s = sum(t, dim=1)
output s
output t: f16
)");
  ASSERT_EQ(schedule.kernels.size(), 2u);
  EXPECT_EQ(schedule.kernels[0].stores.size(), 2u);
  EXPECT_GT(schedule.workspace_bytes, 0);
}

TEST(ScheduleTest, FewLargeReductionsAreSplit) {
  const Schedule schedule = ScheduleOf(R"(
input x: f32[1048576]
s = sum(x)
output s
)");
  EXPECT_GT(schedule.kernels[0].reduce->splits, 100);
  EXPECT_TRUE(schedule.kernels[0].partials.has_value());
}

// Who owns each range of the workspace as the kernels run one after another.
class WorkspaceOwners {
 public:
  explicit WorkspaceOwners(const Schedule& schedule) : schedule_(schedule) {}

  void Run() {
    for (const Kernel& kernel : schedule_.kernels) {
      const KernelSpec spec = MakeKernelSpec(schedule_, kernel);
      for (const KernelTensor& tensor : spec.tensors) {
        if (tensor.place.slot < 0 && !tensor.is_output) {
          CheckRead(kernel, tensor);
        }
      }
      for (const Store& store : kernel.stores) {
        if (store.place.slot < 0) Write(spec, store);
      }
    }
  }

 private:
  struct Range {
    int64_t begin, end;
    std::string owner;
  };

  // Whether `kernel` uses a value of this name.
  bool Uses(const Kernel& kernel, const std::string& name) const {
    std::vector<int> nodes = kernel.group.prologue;
    nodes.insert(nodes.end(), kernel.group.epilogue.begin(),
                 kernel.group.epilogue.end());
    if (kernel.group.anchor >= 0) nodes.push_back(kernel.group.anchor);
    for (const int node : nodes) {
      for (const Operand& operand : schedule_.lowered.nodes[node].operands) {
        const int value = ValueOf(operand);
        if (value >= 0 && schedule_.lowered.values[value].name == name) {
          return true;
        }
      }
    }
    return false;
  }

  void CheckRead(const Kernel& kernel, const KernelTensor& tensor) {
    for (const Range& range : ranges_) {
      if (range.begin != tensor.place.offset_bytes) continue;
      EXPECT_TRUE(Uses(kernel, range.owner))
          << tensor.name << " reads what " << range.owner << " left";
      return;
    }
    ADD_FAILURE() << tensor.name << " is read but gone";
  }

  void Write(const KernelSpec& spec, const Store& store) {
    const LoweredValue& value = schedule_.lowered.values[store.value];
    const int64_t begin = store.place.offset_bytes;
    const int64_t end = begin + SizeBytes({store.place.dtype, value.desc.dims});
    EXPECT_LE(end, schedule_.workspace_bytes);
    for (const KernelTensor& tensor : spec.tensors) {
      if (tensor.place.slot >= 0 || tensor.is_output) continue;
      EXPECT_FALSE(begin <= tensor.place.offset_bytes &&
                   tensor.place.offset_bytes < end)
          << value.name << " overwrites " << tensor.name << " while it is read";
    }
    std::vector<Range> kept = {{begin, end, value.name}};
    for (const Range& range : ranges_) {
      if (range.end <= begin || end <= range.begin) kept.push_back(range);
    }
    ranges_ = std::move(kept);
  }

  const Schedule& schedule_;
  std::vector<Range> ranges_;
};

TEST(ScheduleTest, WorkspaceHoldsEachValueUntilItsLastReader) {
  PlanGeneratorOptions options;
  options.max_ops = 20;
  PlanGenerator generator(11, options);
  for (int i = 0; i < 500; ++i) {
    const CanonicalPlan plan = *Canonicalize(generator.Next());
    SCOPED_TRACE(ToText(plan.plan));
    WorkspaceOwners(MakeSchedules(plan, kTarget, Room::kPlain).front()).Run();
  }
}

TEST(ScheduleTest, EachNodeIsInOneKernel) {
  PlanGenerator generator(12);
  for (int i = 0; i < 200; ++i) {
    const CanonicalPlan plan = *Canonicalize(generator.Next());
    const Schedule schedule =
        MakeSchedules(plan, kTarget, Room::kPlain).front();
    std::vector<int> seen(schedule.lowered.nodes.size(), 0);
    for (const Kernel& kernel : schedule.kernels) {
      if (kernel.group.anchor >= 0) ++seen[kernel.group.anchor];
      for (const int node : kernel.group.prologue) ++seen[node];
      for (const int node : kernel.group.epilogue) ++seen[node];
    }
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << ToText(plan.plan);
  }
}

// A walk that spills is tried again with all registers that it asks for, a tile
// with a smaller one, and at last there is none.
TEST(ScheduleTest, DepthwiseTilesLeaveRoom) {
  const CanonicalPlan plan = *Canonicalize(
      *ParsePlanText("input x: f32[32,96,56,56]\nparam w: f32[96,1,7,7]\n"
                     "y = conv2d(x, w, padding=3, groups=96)\noutput y\n"));
  const auto tile = [&](Room room) {
    return MakeSchedules(plan, kTarget, room)[0].kernels[0].depthwise;
  };
  EXPECT_TRUE(tile(Room::kTight)->walks);
  EXPECT_GT(tile(Room::kTight)->min_blocks, 0);
  EXPECT_TRUE(tile(Room::kAmple)->walks);
  EXPECT_EQ(tile(Room::kAmple)->min_blocks, 0);
  EXPECT_FALSE(tile(Room::kVast)->walks);
  EXPECT_EQ(tile(Room::kVast)->rows, 1);
  EXPECT_EQ(tile(Room::kVast)->columns, tile(Room::kVast)->vector);
  EXPECT_FALSE(tile(Room::kPlain).has_value());
}

// Warps take four times as long: where ptxas refuses warpgroups, these are
// tried with more room for what follows the convolution before it is left to
// them.
TEST(ScheduleTest, WarpsMultiplyLast) {
  const CanonicalPlan plan = *Canonicalize(
      *ParsePlanText("input x: bf16[64,80,80,80]\nparam w: bf16[80,80,3,3]\n"
                     "c = conv2d(x, w, stride=2, padding=1)\ng = gelu(c)\n"
                     "y = sum(g, dim=1, keepdim=True)\noutput y\n"));
  const auto has_groups = [&](Room room) {
    const Schedule schedule = MakeSchedules(plan, kTarget, room).front();
    return schedule.kernels.back().conv->has_groups();
  };
  EXPECT_TRUE(has_groups(Room::kTight));
  EXPECT_TRUE(has_groups(Room::kAmple));
  EXPECT_TRUE(has_groups(Room::kVast));
  EXPECT_FALSE(has_groups(Room::kWarps));
}

TEST(ScheduleTest, LastAttemptIsAKernelForEachBarrier) {
  const CanonicalPlan plan = *Canonicalize(*ParsePlanText(
      "input x: f32[8,32,56,56]\nparam w: f32[48,32,3,3]\n"
      "c = conv2d(x, w, padding=1)\ny = softmax(c, dim=3)\noutput y\n"));
  const std::vector<Schedule> schedules =
      MakeSchedules(plan, kTarget, Room::kPlain);
  ASSERT_EQ(schedules.size(), 1u);
  EXPECT_EQ(schedules[0].requires_, Requirements{});
  for (const Kernel& kernel : schedules[0].kernels) {
    EXPECT_FALSE(kernel.conv.has_value());
    EXPECT_FALSE(kernel.rows.has_value());
  }
}

TEST(WorkspaceTest, BuffersOfDifferentTimesShareMemory) {
  const WorkspaceLayout layout =
      LayOutWorkspace({{0, 1, 1000}, {1, 2, 1000}, {2, 3, 1000}});
  EXPECT_EQ(layout.size_bytes, 2048);
  EXPECT_EQ(layout.offsets[0], layout.offsets[2]);
  EXPECT_NE(layout.offsets[0], layout.offsets[1]);
}

TEST(WorkspaceTest, NothingNeedsNothing) {
  EXPECT_EQ(LayOutWorkspace({}).size_bytes, 0);
}

TEST(ReduceViewTest, MergesNeighboursOfOneKind) {
  const auto view = [](std::vector<int64_t> dim, const Dims& dims) {
    Node node;
    node.kind = NodeKind::kReduce;
    node.op = OpKind::kSum;
    node.attributes = ReduceAttributes{std::move(dim)};
    const ReduceView v = ViewOf(node, dims);
    return std::vector<int64_t>{v.kept0, v.reduced0, v.kept1, v.reduced1,
                                v.kept2};
  };
  using V = std::vector<int64_t>;
  EXPECT_EQ(view({}, {2, 3, 5, 7}), (V{1, 210, 1, 1, 1}));
  EXPECT_EQ(view({1}, {2, 3, 5, 7}), (V{2, 3, 35, 1, 1}));
  EXPECT_EQ(view({2, 3}, {2, 3, 5, 7}), (V{6, 35, 1, 1, 1}));
  EXPECT_EQ(view({0, 2}, {2, 3, 5, 7}), (V{1, 2, 3, 5, 7}));
  EXPECT_EQ(view({1, 3}, {2, 3, 5, 7}), (V{2, 3, 5, 7, 1}));
  EXPECT_EQ(view({1}, {2, 3, 1, 1}), (V{2, 3, 1, 1, 1}));
  EXPECT_EQ(view({}, {}), (V{1, 1, 1, 1, 1}));
}

}  // namespace
}  // namespace kiln
