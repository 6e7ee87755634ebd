// What a fence for products covers. Prevents that a missing one is not seen.
#include "tests/ptx/races.h"

#include <gtest/gtest.h>

namespace kiln::ptx {
namespace {

constexpr int kWriter = 0;
constexpr int kReaders[] = {4, 5, 6, 7};  // a warpgroup
constexpr int kNobody = -1;

class SharedRacesTest : public ::testing::Test {
 protected:
  SharedRacesTest() { races_.Start(8, 64); }

  void Write() { ASSERT_EQ(races_.Write(kWriter, 16, 16), kNobody); }
  void Meet() { races_.Meet({0, 1, 2, 3, 4, 5, 6, 7}); }
  void FenceReaders() {
    for (const int reader : kReaders) races_.Fence(reader);
  }
  int Multiply() {
    auto order = races_.OrderOfProduct(kReaders[0]);
    return races_.ReadByProduct(&order, 16);
  }

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
  FenceReaders();
  EXPECT_EQ(Multiply(), kNobody);
}

TEST_F(SharedRacesTest, EachReaderNeedsItsOwn) {
  Write();
  Meet();
  races_.Fence(kReaders[0]);
  EXPECT_EQ(Multiply(), kWriter);
}

TEST_F(SharedRacesTest, AReadersFenceCoversWhatItKnows) {
  Write();
  FenceReaders();
  Meet();
  EXPECT_EQ(Multiply(), kWriter);
}

TEST_F(SharedRacesTest, LaterWritesNeedAnother) {
  Write();
  Meet();
  FenceReaders();
  EXPECT_EQ(Multiply(), kNobody);
  Meet();
  Write();
  Meet();
  EXPECT_EQ(Multiply(), kWriter);
}

}  // namespace
}  // namespace kiln::ptx
