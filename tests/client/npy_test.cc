#include "client/cli/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::cli {
namespace {

using ::testing::HasSubstr;

TEST(NpyTest, RoundTripsEveryTypeAndRank) {
  for (const DataType type :
       {DataType::kF32, DataType::kF16, DataType::kBF16}) {
    for (const Dims& dims : {Dims{}, Dims{5}, Dims{2, 3}, Dims{1, 2, 3, 4}}) {
      const TensorDesc desc = {type, dims};
      std::string elements(SizeBytes(desc), '\0');
      for (size_t i = 0; i < elements.size(); ++i) {
        elements[i] = static_cast<char>(i * 7);
      }
      const std::string file = FormatNpy(desc, elements);
      EXPECT_EQ((file.size() - elements.size()) % 64, 0u);
      const absl::StatusOr<std::string> read = ParseNpy(file, desc);
      ASSERT_TRUE(read.ok()) << ToString(desc) << read.status().ToString();
      EXPECT_EQ(*read, elements);
    }
  }
}

// What numpy.save writes for np.arange(6, dtype='<f4').reshape(2, 3).
TEST(NpyTest, HeaderIsNumPys) {
  const std::string file =
      FormatNpy({DataType::kF32, {2, 3}}, std::string(24, '\0'));
  EXPECT_THAT(file,
              HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': "
                        "(2, 3), }"));
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(file[127], '\n');
  EXPECT_THAT(FormatNpy({DataType::kF32, {6}}, std::string(24, '\0')),
              HasSubstr("'shape': (6,), }"));
}

TEST(NpyTest, RefusesOtherTensorsAndDamagedFiles) {
  const TensorDesc desc = {DataType::kF32, {2, 3}};
  const std::string file = FormatNpy(desc, std::string(24, '\0'));
  EXPECT_FALSE(ParseNpy(file, {DataType::kF32, {3, 2}}).ok());
  EXPECT_FALSE(ParseNpy(file, {DataType::kF16, {2, 3}}).ok());
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ParseNpy(file.substr(0, size), desc).ok()) << size;
  }
  std::string fortran = file;
  fortran.replace(fortran.find("False"), 5, "True ");
  EXPECT_FALSE(ParseNpy(fortran, desc).ok());
}

}  // namespace
}  // namespace kiln::cli
