// Longer than 400 lines because each kind of chain has a plan of its own.
// Which reductions over the same rows one kernel computes. Prevents that rows
// are read once for each of them, that reductions join which are of different
// rows, and that something is read before it is made.
#include "jit/compile/row_chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// (x - mean) / sqrt(variance + epsilon) over `dim`.
std::string LayerNorm(const std::string& dims, const std::string& dim,
                      const std::string& type = "f32") {
  return fmt::format(
      "input x: {0}[{1}]\nm = mean(x, dim={2}, keepdim=true)\nd = sub(x, m)\n"
      "q = mul(d, d)\nv = mean(q, dim={2}, keepdim=true)\n"
      "e = add(v, 1e-5)\ns = sqrt(e)\ny = div(d, s)\noutput y\n",
      type, dims, dim);
}

std::string Cosine(const std::string& dims) {
  return fmt::format(
      "input x: f32[{0}]\ninput y: f32[{0}]\n"
      "a = mul(x, y)\nb = sum(a, dim=1)\nc = mul(x, x)\nd = sum(c, dim=1)\n"
      "e = mul(y, y)\nf = sum(e, dim=1)\ng = mul(d, f)\nh = sqrt(g)\n"
      "z = div(b, h)\noutput z\n",
      dims);
}

std::vector<const Kernel*> Chains(const Schedule& schedule) {
  std::vector<const Kernel*> chains;
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.rows && kernel.rows->is_chain()) {
      chains.push_back(&kernel);
    }
  }
  return chains;
}

bool IsOneChain(const std::string& text) {
  const Schedule schedule = Fastest(text);
  return schedule.kernels.size() == 1 && Chains(schedule).size() == 1;
}

bool HasChain(const std::string& text) {
  return !Chains(Fastest(text)).empty();
}

TEST(RowChainsTest, ReductionsOfEachOtherAreOneKernel) {
  EXPECT_TRUE(IsOneChain(LayerNorm("8192,1024", "1", "bf16")));
  EXPECT_TRUE(IsOneChain(LayerNorm("32,96,56,56", "1")));
  EXPECT_TRUE(IsOneChain(LayerNorm("64,128,64,64", "[2,3]")));
}

TEST(RowChainsTest, ReductionsOfTheSameElementsAreOneKernel) {
  EXPECT_TRUE(IsOneChain(Cosine("65536,256")));
  EXPECT_TRUE(
      IsOneChain("input x: f32[64,256,56,56]\na = mean(x, dim=[2,3])\n"
                 "b = amax(x, dim=[2,3])\noutput a\noutput b\n"));
}

// A softmax of the plan beside a reduction that keeps no dimension.
TEST(RowChainsTest, SoftmaxIsALinkLikeAnyOther) {
  EXPECT_TRUE(
      IsOneChain("input x: f32[8,21,256,256]\np = softmax(x, dim=1)\n"
                 "l = logsumexp(x, dim=1, keepdim=true)\ng = sub(x, l)\n"
                 "h = mul(p, g)\ny = sum(h, dim=1)\noutput y\n"));
}

TEST(RowChainsTest, AnElementMayBeAnOutputToo) {
  const Schedule schedule = Fastest(
      "input x: f32[8192,512]\ninput y: f32[8192,512]\nz = add(x, y)\n"
      "a = amax(z, dim=1, keepdim=true)\nb = sub(z, a)\ne = exp(b)\n"
      "s = sum(e, dim=1, keepdim=true)\no = div(e, s)\n"
      "output o\noutput z\noutput s\n");
  ASSERT_EQ(schedule.kernels.size(), 1u);
  EXPECT_EQ(schedule.kernels[0].stores.size(), 3u);
}

TEST(RowChainsTest, OfOtherRowsIsNoLink) {
  EXPECT_FALSE(HasChain(
      "input x: f32[512,512]\na = mean(x, dim=1, keepdim=true)\n"
      "b = mean(x, dim=0, keepdim=true)\nc = sub(x, a)\ny = sub(c, b)\n"
      "output y\n"));
}

// Without a kept dimension a row's number stands where a column's would.
TEST(RowChainsTest, WhatIsBroadcastAlongRowsDoesNotJoin) {
  const Schedule schedule = Fastest(
      "input x: f32[512,512]\na = mean(x, dim=1)\nb = amax(x, dim=1)\n"
      "c = sub(x, a)\ny = div(c, b)\noutput y\n");
  EXPECT_EQ(schedule.kernels.size(), 2u);
  ASSERT_EQ(Chains(schedule).size(), 1u);
  EXPECT_EQ(Chains(schedule)[0]->stores.size(), 2u);
}

// Each of two chains would be computed of the other, or before it.
TEST(RowChainsTest, ChainsDoNotReadWhatIsNotMade) {
  for (const char* plan :
       {"input x: f32[16,33,96]\na = softmax(x, dim=1)\n"
        "b = amin(a, dim=2, keepdim=true)\nc = softmax(x, dim=2)\n"
        "d = mean(c, dim=1, keepdim=true)\noutput d\noutput b\n",
        "input x: f32[256,256]\nc = mean(x, dim=0, keepdim=true)\n"
        "d = sub(x, c)\nr = amax(d, dim=1, keepdim=true)\n"
        "s = amin(d, dim=1, keepdim=true)\nq = amin(x, dim=0, keepdim=true)\n"
        "output r\noutput s\noutput q\n"}) {
    const Schedule schedule = Fastest(plan);
    std::set<int> made;
    for (const Kernel& kernel : schedule.kernels) {
      for (const int value : ValuesRead(schedule.lowered, kernel.group)) {
        const bool is_input = schedule.lowered.values[value].producer < 0;
        EXPECT_TRUE(is_input || made.count(value) > 0) << plan;
      }
      for (const Store& store : kernel.stores) made.insert(store.value);
    }
  }
}

// All links are of broadcast numbers: nothing would be kept.
TEST(RowChainsTest, RowsThatNobodyReadsAreNotKept) {
  EXPECT_FALSE(
      HasChain("input a: f32[256,1]\ninput b: f32[1,256]\n"
               "input x: f32[256,256]\ns = mul(a, b)\n"
               "m = amax(s, dim=1, keepdim=true)\nt = sub(s, m)\n"
               "n = amin(t, dim=1, keepdim=true)\nu = mul(x, n)\n"
               "output u\n"));
}

// A function of twenty reductions is no longer inlined.
TEST(RowChainsTest, ManyReductionsAreSeveralKernels) {
  std::string plan = "input x: f32[512,512]\n";
  for (int i = 0; i < 20; ++i) {
    plan += fmt::format(
        "s{0} = mul(x, {0}.5)\nr{0} = amax(s{0}, dim=1)\n"
        "output r{0}\n",
        i);
  }
  const Schedule schedule = Fastest(plan);
  for (const Kernel* chain : Chains(schedule)) {
    EXPECT_LE(chain->row_work->reductions, 8);
  }
  EXPECT_GT(schedule.kernels.size(), 1u);
}

// The second kernel of a variance's mean, as before.
TEST(RowChainsTest, WhatOneKernelComputesAnywayStaysThere) {
  EXPECT_FALSE(HasChain(
      "input x: f32[32,64,128,128]\nm = mean(x, dim=[2,3], keepdim=true)\n"
      "d = sub(x, m)\nq = mul(d, d)\ny = mean(q, dim=[2,3])\noutput y\n"));
}

// Those that are read once, as totals are, have up to 256 blocks each.
TEST(RowChainsTest, FewRowsHaveManyBlocks) {
  const Schedule schedule = Fastest(Cosine("1,4194304"));
  ASSERT_EQ(Chains(schedule).size(), 1u);
  EXPECT_TRUE(Chains(schedule)[0]->rows->splits);
  EXPECT_EQ(Chains(schedule)[0]->rows->cluster, 256);
  EXPECT_FALSE(HasChain(Cosine("1,4000003"))) << "parts would not be alike";
}

// A row of 400 kB, and norms of 295 kB in rows of 590: blocks of a cluster
// share them, of which each norm has its own.
TEST(RowChainsTest, LongRowsAreSharedByBlocks) {
  const Schedule softmax = Fastest(
      "input x: f32[512,100000]\nm = amax(x, dim=1, keepdim=true)\n"
      "d = sub(x, m)\ne = exp(d)\ns = sum(e, dim=1, keepdim=true)\n"
      "y = div(e, s)\noutput y\n");
  ASSERT_EQ(softmax.kernels.size(), 1u);
  EXPECT_GT(softmax.kernels[0].rows->cluster, 1);
  const Schedule norms = Fastest(
      "input x: f32[32,64,96,96]\na = group_norm(x, num_groups=8)\n"
      "b = relu(a)\ny = group_norm(b, num_groups=4)\noutput y\n");
  ASSERT_EQ(norms.kernels.size(), 1u);
  EXPECT_EQ(norms.kernels[0].rows->length, 16 * 96 * 96);
  const int cluster = norms.kernels[0].rows->cluster;
  const std::string unit = WriteUnit(MakeKernelSpec(norms, norms.kernels[0]));
  EXPECT_THAT(unit, HasSubstr("kRowLength = 147456, kPitch = 1, kRun = 147456"))
      << "the longer of both";
  EXPECT_THAT(unit,
              HasSubstr(fmt::format("BlocksOf(kiln::Link<0>) {{ return {}; }}",
                                    cluster / 2)));
  EXPECT_THAT(unit, HasSubstr(fmt::format(
                        "BlocksOf(kiln::Link<1>) {{ return {}; }}", cluster)));
}

// A norm that is applied elsewhere, and a reduction beside norms of norms.
TEST(RowChainsTest, OnlyNormsThatStayInsideNest) {
  for (const char* rest :
       {"y = amax(b, dim=1)\noutput y\n",
        "y = max_pool2d(b, kernel_size=2)\noutput y\n",
        "r = relu(a)\nm = mean(r, dim=[2,3], keepdim=true)\ny = mul(b, m)\n"
        "output y\n"}) {
    for (const int first : {1, 2}) {
      const std::string plan = fmt::format(
          "input x: f32[32,2,64,64]\na = group_norm(x, num_groups={})\n"
          "b = group_norm(a, num_groups={})\n{}",
          first, 3 - first, rest);
      for (const Kernel* chain : Chains(Fastest(plan))) {
        EXPECT_EQ(chain->row_work->shortest, chain->row_work->length) << plan;
      }
    }
  }
}

// Of a third of the channels no number of blocks is a power of two.
TEST(RowChainsTest, NormsThatDoNotNestStayApart) {
  EXPECT_FALSE(
      HasChain("input x: f32[32,48,96,96]\na = group_norm(x, num_groups=6)\n"
               "b = relu(a)\ny = group_norm(b, num_groups=2)\noutput y\n"));
  EXPECT_FALSE(
      HasChain("input x: f32[32,48,96,96]\n"
               "a = group_norm(x, num_groups=6)\nb = relu(a)\n"
               "y = group_norm(b, num_groups=4)\noutput y\n"));
}

// A pooling between two reductions of the same rows reads what the first makes.
TEST(RowChainsTest, NothingIsReadBeforeItIsMade) {
  const Schedule schedule = Fastest(
      "input x: f32[8,64,32,32]\nm = mean(x, dim=[2,3], keepdim=true)\n"
      "d = sub(x, m)\n"
      "p = max_pool2d(d, kernel_size=3, stride=1, padding=1)\n"
      "q = mul(d, p)\nv = mean(q, dim=[2,3], keepdim=true)\ny = div(q, v)\n"
      "output y\n");
  EXPECT_TRUE(Chains(schedule).empty());
  EXPECT_EQ(schedule.kernels.back().stores.size(), 1u);
}

// Only rows that are read and no more are what caches give up first.
TEST(RowChainsTest, RowsThatEndInNumbersAreStreamed) {
  EXPECT_TRUE(Fastest(Cosine("65536,256")).kernels[0].rows->streams);
  EXPECT_FALSE(Fastest(LayerNorm("65536,256", "1")).kernels[0].rows->streams);
}

// What statistics are made of is kept; what only results need is not.
TEST(RowChainsTest, KeptAreTheElementsThatReductionsNeed) {
  const Schedule schedule = Fastest(
      "input x: f16[1024,20000]\ninput r: f32[1024,20000]\n"
      "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
      "v = mean(q, dim=1, keepdim=true)\nn = div(d, v)\ny = add(n, r)\n"
      "output y\n");
  ASSERT_EQ(schedule.kernels.size(), 1u);
  const Kernel& kernel = schedule.kernels[0];
  EXPECT_EQ(kernel.row_work->kept_bytes, 2);
  const std::string unit = WriteUnit(MakeKernelSpec(schedule, kernel));
  EXPECT_THAT(unit, HasSubstr("kiln::Fetch(kept.i0"));
  EXPECT_THAT(unit, Not(HasSubstr("kept.i1")));
  EXPECT_THAT(unit, HasSubstr("kiln::Fetch(t.i1"));
}

// Nothing is kept of rows that one pass is enough for, however long they are.
TEST(RowChainsTest, IndependentReductionsAreOnePassThatKeepsNothing) {
  for (const char* dims : {"64,65536", "8192,4096", "128,1000000"}) {
    const Schedule schedule = Fastest(Cosine(dims));
    ASSERT_EQ(Chains(schedule).size(), 1u) << dims;
    EXPECT_EQ(schedule.kernels[0].rows->kept_bytes, 0) << dims;
    EXPECT_EQ(schedule.kernels[0].rows->dynamic_shared_bytes, 0) << dims;
    const std::string unit =
        WriteUnit(MakeKernelSpec(schedule, schedule.kernels[0]));
    EXPECT_THAT(unit, HasSubstr("EndOfPass(kiln::Link<0>) { return 3; }"));
    EXPECT_THAT(unit, Not(HasSubstr("BeginCopy<")));
  }
}

// Of few rows each has several blocks, which need not be resident together.
TEST(RowChainsTest, OnePassOverFewRowsLeavesStatesInMemory) {
  const Schedule schedule = Fastest(Cosine("64,65536"));
  const Kernel& kernel = schedule.kernels[0];
  ASSERT_TRUE(kernel.rows->splits);
  EXPECT_GT(kernel.rows->blocks(), 132);
  EXPECT_EQ(schedule.requires_, Requirements{});
  const int64_t states = kernel.rows->rows * kernel.rows->cluster;
  EXPECT_GE(schedule.workspace_bytes, states * 3 * 2 * 4);
  const KernelSpec spec = MakeKernelSpec(schedule, kernel);
  ASSERT_EQ(spec.entries.size(), 2u);
  EXPECT_EQ(spec.entries[0].symbol, "kiln_row_chain");
  EXPECT_EQ(spec.entries[0].cluster[0], 1u);
  EXPECT_EQ(spec.entries[1].symbol, "kiln_merge_chain");
  EXPECT_EQ(spec.entries[1].grid[0] * spec.entries[1].threads, states);
  EXPECT_FALSE(Fastest(Cosine("8192,4096")).kernels[0].rows->splits);
}

// Kernels count the elements of a block in 32 bits. Prevents that a block has
// more of a row than they can count.
TEST(RowChainsTest, NoBlockHasMoreThanKernelsCount) {
  constexpr int64_t kMost = int64_t{1} << 30;
  for (const int64_t lines : {32768, 32769, 65536, 131072, 262144}) {
    const Schedule schedule = Fastest(
        fmt::format("input x: f32[16,{},32768]\na = mean(x, dim=[1,2])\n"
                    "b = amax(x, dim=[1,2])\noutput a\noutput b\n",
                    lines));
    ASSERT_EQ(Chains(schedule).size(), 1u) << lines;
    int64_t most = 0;
    for (const RowCandidate& candidate :
         RankRowGeometries(*Chains(schedule)[0]->row_work, kH100)) {
      if (!candidate.refusal.empty() || !candidate.geometry) continue;
      most = std::max(most, lines * 32768 / candidate.geometry->cluster);
    }
    EXPECT_LE(most, kMost) << lines;
    EXPECT_GT(most, kMost / 2) << lines;
  }
}

// The sums of an entropy need the largest element, and not each other.
TEST(RowChainsTest, ReductionsShareAPassUpToTheFirstThatNeedsAnother) {
  const Schedule schedule = Fastest(
      "input x: f32[4096,20000]\nm = amax(x, dim=1, keepdim=true)\n"
      "d = sub(x, m)\ne = exp(d)\ns = sum(e, dim=1, keepdim=true)\n"
      "w = mul(e, d)\nt = sum(w, dim=1, keepdim=true)\nq = div(t, s)\n"
      "y = sub(d, q)\noutput y\n");
  ASSERT_EQ(Chains(schedule).size(), 1u);
  EXPECT_EQ(schedule.kernels[0].rows->kept_bytes, 4);
  const std::string unit =
      WriteUnit(MakeKernelSpec(schedule, schedule.kernels[0]));
  EXPECT_THAT(unit, HasSubstr("EndOfPass(kiln::Link<0>) { return 1; }"));
  EXPECT_THAT(unit, HasSubstr("EndOfPass(kiln::Link<1>) { return 3; }"));
}

RowGeometry RowsOfChain(const std::string& text, Room room = Room::kTight) {
  const Schedule schedule =
      MakeSchedules(*Canonicalize(*ParsePlanText(text)), kH100, room).front();
  const std::vector<const Kernel*> chains = Chains(schedule);
  EXPECT_EQ(chains.size(), 1u) << text;
  return chains.empty() ? RowGeometry{} : *chains[0]->rows;
}

TEST(RowChainsTest, ShortRowsStayInRegisters) {
  const RowGeometry rows = RowsOfChain(LayerNorm("8192,1024", "1", "bf16"));
  EXPECT_EQ(rows.keeper, RowKeeper::kWarpChain);
  EXPECT_EQ(rows.lanes, 32);
  EXPECT_EQ(rows.dynamic_shared_bytes, 0);
  EXPECT_EQ(RowsOfChain(LayerNorm("65536,64", "1")).lanes, 8);
  const RowGeometry warps = RowsOfChain(LayerNorm("8192,5120", "1", "bf16"));
  EXPECT_EQ(warps.keeper, RowKeeper::kWarpChain);
  EXPECT_EQ(warps.lanes, 160);  // no place of theirs is empty
  EXPECT_EQ(warps.threads, 160);
  EXPECT_EQ(RowsOfChain(LayerNorm("1024,17000", "1", "bf16")).keeper,
            RowKeeper::kChain);
}

// Threads next to each other read whole lines of memory, of two or four rows
// each, and hold no more than 32 elements.
TEST(RowChainsTest, ShortRowsSideBySideStayInRegisters) {
  for (const auto& [channels, lanes] : {std::pair(8, 1), std::pair(96, 8)}) {
    const RowGeometry rows =
        RowsOfChain(LayerNorm(fmt::format("32,{},56,56", channels), "1"));
    EXPECT_EQ(rows.keeper, RowKeeper::kWarpChain);
    EXPECT_EQ(rows.lanes, lanes);
    EXPECT_EQ(rows.vector, channels == 8 ? 4 : 2);
    EXPECT_GE(rows.threads / rows.lanes * rows.vector * 4, 128);
    EXPECT_LE(channels / lanes * rows.vector, 32);
  }
}

// Of 16 bits up to 48, in accesses of two numbers; of one where rows begin
// anywhere, or where more than 16 threads would have to meet.
TEST(RowChainsTest, HalvesSideBySideStayInRegisters) {
  struct Case {
    const char* dims;
    int vector, lanes;
  };
  for (const Case& c :
       {Case{"32,96,56,56", 2, 4}, Case{"32,192,28,28", 2, 8},
        Case{"64,384,14,14", 2, 16}, Case{"32,768,14,14", 1, 16},
        Case{"32,768,7,7", 1, 16}}) {
    const RowGeometry rows = RowsOfChain(LayerNorm(c.dims, "1", "f16"));
    EXPECT_EQ(rows.keeper, RowKeeper::kWarpChain) << c.dims;
    EXPECT_EQ(rows.vector, c.vector) << c.dims;
    EXPECT_EQ(rows.lanes, c.lanes) << c.dims;
  }
}

// Each of many threads above each other would read what all others have.
TEST(RowChainsTest, ManyThreadsAboveEachOtherHoldNothingInRegisters) {
  for (const char* dims : {"4096,384,2", "4096,12,2"}) {
    EXPECT_EQ(RowsOfChain(LayerNorm(dims, "1")).keeper, RowKeeper::kChain)
        << dims;
  }
}

// Unless a row is so long that fewer cannot hold it, and blocks are as wide as
// memory reads.
TEST(RowChainsTest, LongRowsSideBySideAreHeldByManyThreads) {
  const RowGeometry rows = RowsOfChain(LayerNorm("32,1024,56,56", "1"));
  EXPECT_EQ(rows.keeper, RowKeeper::kWarpChain);
  EXPECT_EQ(rows.lanes, 32);
  EXPECT_EQ(RowsOfChain(LayerNorm("8,960,49", "1")).lanes, 64) << "few blocks";
  EXPECT_EQ(RowsOfChain(LayerNorm("2,2048,49", "1")).lanes, 64);
}

// Two operands that are needed to the end leave room for fewer elements.
TEST(RowChainsTest, WhatIsHeldSharesTheRegisters) {
  EXPECT_EQ(RowsOfChain(Cosine("65536,192")).lanes, 8);
  EXPECT_EQ(RowsOfChain(Cosine("65536,256")).lanes, 16);
  EXPECT_EQ(RowsOfChain(LayerNorm("65536,256", "1")).lanes, 16);
}

// More values to be held than a thread has registers for: 22 outputs, made of
// what 28 operands of norms make of the first reduction.
TEST(RowChainsTest, WhatCannotBeHeldIsNot) {
  std::string inputs = "input x: f32[64,4,8,8]\n";
  std::string ops = "m = mean(x, dim=[1,2,3], keepdim=true)\nz0 = sub(x, m)\n";
  std::string outputs;
  const auto normalise = [&](const std::string& name, const std::string& of,
                             int i) {
    ops += fmt::format("{0} = batch_norm({1}, m{2}, v{2}, w{2}, b{2})\n", name,
                       of, i);
    outputs += fmt::format("output {}\n", name);
  };
  std::string last = "z0";
  for (int i = 0; i < 7; ++i) {
    for (const char* kind : {"m", "v", "w", "b"}) {
      inputs += fmt::format("input {}{}: f32[4]\n", kind, i);
    }
    normalise(fmt::format("p{}", i), last, i);
    last = fmt::format("p{}", i);
  }
  for (int i = 1; i < 15; ++i) {
    ops += fmt::format("z{} = add({}, 0.{})\n", i, last, i);
    last = fmt::format("z{}", i);
    outputs += fmt::format("output {}\n", last);
  }
  ops += fmt::format(
      "s = mean({0}, dim=[1,2,3], keepdim=true)\nq = sub({0}, s)\n", last);
  last = "q";
  for (int i = 0; i < 7; ++i) {
    ops += fmt::format("q{0} = batch_norm({1}, m{0}, v{0}, w{0}, b{0})\n", i,
                       last);
    last = fmt::format("q{}", i);
  }
  const Schedule schedule =
      Fastest(inputs + ops + outputs + "output " + last + "\n");
  for (const Kernel& kernel : schedule.kernels) {
    EXPECT_FALSE(kernel.rows.has_value() &&
                 kernel.rows->keeper == RowKeeper::kWarpChain);
  }
}

// Where registers did not suffice, shared memory has the rows.
TEST(RowChainsTest, RegistersAreSparedWhereTheyDidNotSuffice) {
  for (const std::string& plan :
       {LayerNorm("8192,1024", "1"), LayerNorm("32,96,56,56", "1")}) {
    EXPECT_EQ(RowsOfChain(plan).keeper, RowKeeper::kWarpChain);
    for (const Room room : {Room::kAmple, Room::kVast}) {
      EXPECT_EQ(RowsOfChain(plan, room).keeper, RowKeeper::kChain);
    }
  }
}

// What elements are divided by is prepared once for a row.
TEST(RowChainsTest, WhatARowHasInCommonIsComputedOnce) {
  const Schedule schedule = Fastest(LayerNorm("8192,1024", "1"));
  const std::string unit =
      WriteUnit(MakeKernelSpec(schedule, schedule.kernels[0]));
  EXPECT_THAT(unit, HasSubstr("kiln::DivBy(v1, row.v5_divisor)"));
  EXPECT_THAT(unit, HasSubstr("row->v5_divisor = kiln::DivisorOf(v5);"));
}

}  // namespace
}  // namespace kiln
