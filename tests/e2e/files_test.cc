#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

using ::testing::HasSubstr;

class FilesTest : public testing::Test {
 protected:
  FilesTest() : plan_(Path("plan.kiln")) {
    WriteWhole(plan_, SmallPlanText(1));
  }

  std::string Path(const std::string& name) { return daemon_.folder() / name; }

  Daemon daemon_;
  const std::string plan_;
};

// Prevents a file that is far too long from taking all memory.
TEST_F(FilesTest, InputsAreReadAsFarAsTheyCanBeRight) {
  WriteWhole(Path("sparse.npy"), "");
  std::filesystem::resize_file(Path("sparse.npy"), uintmax_t{300} << 30);
  for (const std::string& path :
       {std::string("/dev/zero"), Path("sparse.npy")}) {
    const CommandResult result =
        daemon_.Kiln({"run", plan_, "--input", "x=" + path});
    EXPECT_EQ(result.status, 2) << result.err;
    // 64 elements of f32 behind the longest header.
    EXPECT_THAT(result.err, HasSubstr(path + " is too long for input x "
                                             "(allowed: at most 65801 bytes)"));
  }
}

TEST_F(FilesTest, StandardInputThatCannotBeReadIsNoEmptyPlan) {
  const CommandResult result =
      daemon_.Kiln({"compile", "-", "--target", "cpu"}, daemon_.folder());
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("The file - cannot be read: Is a directory"));
}

TEST_F(FilesTest, AJournalThatCannotBeWrittenSaysWhy) {
  WriteWhole(Path("m.jsonl"), "");
  std::filesystem::create_directory(Path("m.jsonl.done"));
  const CommandResult result =
      daemon_.Kiln({"prewarm", Path("m.jsonl"), "--resume"});
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("m.jsonl.done cannot be written: Is a directory"));
}

// Prevents an output that cannot be saved.
TEST_F(FilesTest, OutputsOfOneNameAreToldApart) {
  WriteWhole(plan_, "input x: f32[64]\ny = relu(x)\noutput y\noutput y: f16\n");
  const CommandResult result =
      daemon_.Kiln({"run", plan_, "--output", "y=" + Path("y.npy"), "--output",
                    "y#1=" + Path("y1.npy")});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(ReadWhole(Path("y.npy")), HasSubstr("<f4"));
  EXPECT_THAT(ReadWhole(Path("y1.npy")), HasSubstr("<f2"));
}

}  // namespace
}  // namespace kiln::e2e
