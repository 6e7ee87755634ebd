#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

// The headline chains: compiled for two GPUs, executed on the reference device
// on memory that another process shares, and verified.
TEST(ChainsTest, CompileForTwoTargetsAndVerifyOnCpu) {
  const Daemon daemon;
  int chains = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(KILN_EXAMPLE_PLANS)) {
    if (file.path().extension() != ".kiln") continue;
    ++chains;
    const std::string plan = file.path();
    const CommandResult compiled =
        daemon.Kiln({"compile", plan, "--target", "h100-sxm,a100", "--json"});
    ASSERT_EQ(compiled.status, 0) << plan << compiled.err;
    const auto document = nlohmann::json::parse(compiled.out);
    ASSERT_EQ(document["results"].size(), 2u);
    for (const auto& result : document["results"]) {
      EXPECT_EQ(result["source"], "compiled");
      for (const auto& kernel : result["kernels"]) {
        EXPECT_EQ(kernel["local_bytes"], 0) << plan << " spills";
      }
    }
    const CommandResult run =
        daemon.Kiln({"run", plan, "--device", "cpu", "--verify"});
    EXPECT_EQ(run.status, 0) << run.out << run.err;
  }
  EXPECT_GE(chains, 4);
}

}  // namespace
}  // namespace kiln::e2e
