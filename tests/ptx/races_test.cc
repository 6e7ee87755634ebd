// What a fence for products covers. Prevents that a missing one is not seen.
#include "tests/ptx/races.h"

#include <gtest/gtest.h>

namespace kiln::ptx {
namespace {

constexpr int kWriter = 0;
constexpr int kReader = 1;
constexpr int kNobody = -1;

class SharedRacesTest : public ::testing::Test {
 protected:
  SharedRacesTest() { races_.Start(2, 64); }

  void Write() { ASSERT_EQ(races_.Write(kWriter, 16, 16), kNobody); }
  void Meet() { races_.Meet({kWriter, kReader}); }
  int Multiply() { return races_.ReadByProduct(kReader, 16, 16); }

  SharedRaces races_;
};

TEST_F(SharedRacesTest, ProductsNeedAFence) {
  Write();
  Meet();
  EXPECT_EQ(Multiply(), kWriter);
}

TEST_F(SharedRacesTest, TheWritersFenceComesBeforeTheBarrier) {
  Write();
  races_.Fence(kWriter);
  Meet();
  EXPECT_EQ(Multiply(), kNobody);
}

TEST_F(SharedRacesTest, OrTheReadersBehindIt) {
  Write();
  Meet();
  races_.Fence(kReader);
  EXPECT_EQ(Multiply(), kNobody);
}

TEST_F(SharedRacesTest, AReadersFenceCoversWhatItKnows) {
  Write();
  races_.Fence(kReader);
  Meet();
  EXPECT_EQ(Multiply(), kWriter);
}

TEST_F(SharedRacesTest, LaterWritesNeedAnother) {
  Write();
  Meet();
  races_.Fence(kReader);
  EXPECT_EQ(Multiply(), kNobody);
  Meet();
  Write();
  Meet();
  EXPECT_EQ(Multiply(), kWriter);
}

}  // namespace
}  // namespace kiln::ptx
