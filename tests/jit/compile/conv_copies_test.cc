// Batches that producers copy ahead (kernel_sources/conv_copies.cuh). Prevents
// that it is done where four pixels lie in two rows, or begin between accesses,
// and where it takes longer.
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

// One tap, from 256 to 64 channels.
ConvGeometry GeometryOf(const std::string& ops, int width = 56,
                        const std::string& type = "f32", int kernel = 1) {
  const Schedule schedule = Fastest(
      fmt::format("input x: {0}[32,256,56,{1}]\nparam w: {0}[64,256,{2},{2}]\n"
                  "c = conv2d(x, w)\n{3}\noutput y\n",
                  type, width, kernel, ops),
      kH100);
  return *ConvolutionOf(schedule).conv;
}

TEST(ConvCopiesTest, BatchesOfOneTapAreCopiedAhead) {
  const ConvGeometry g = GeometryOf("y = relu(c)");
  EXPECT_GT(g.batches_ahead, 0);
  EXPECT_GT(g.copy_units(), 0);
  EXPECT_FALSE(g.shares_chunks());
  EXPECT_EQ(g.carried_rows(), 0);
}

TEST(ConvCopiesTest, PlacesAreForAllThatIsOnItsWay) {
  const ConvGeometry g = GeometryOf("y = relu(c)");
  ConvGeometry plain = g;
  plain.batches_ahead = 0;
  const int64_t bytes_of_octet = 8 * sizeof(float);
  EXPECT_EQ(g.shared_bytes() - plain.shared_bytes(),
            bytes_of_octet * g.batches_ahead * g.octets_at_once() *
                g.producers * 128);
}

TEST(ConvCopiesTest, OthersAreNot) {
  EXPECT_EQ(GeometryOf("y = relu(c)", 55).batches_ahead, 0);
  EXPECT_EQ(GeometryOf("y = relu(c)", 56, "f16").batches_ahead, 0);
  EXPECT_EQ(GeometryOf("y = relu(c)", 56, "f32", 3).batches_ahead, 0);
  const ConvGeometry held = GeometryOf("y = group_norm(c, num_groups=8)");
  EXPECT_TRUE(held.holds_images());
  EXPECT_EQ(held.batches_ahead, 0);
}

}  // namespace
}  // namespace kiln
