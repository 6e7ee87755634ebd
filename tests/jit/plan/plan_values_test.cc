#include <gtest/gtest.h>

#include <set>

#include "jit/plan/data_type.h"
#include "jit/plan/errors.h"
#include "jit/plan/nearest_name.h"
#include "jit/plan/op_table.h"
#include "jit/plan/plan.h"
#include "jit/plan/tensor_desc.h"

namespace kiln {
namespace {

TEST(DataTypeTest, NamesReadBack) {
  for (DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16}) {
    EXPECT_EQ(ParseDataType(DataTypeName(type)), type);
  }
  EXPECT_EQ(ParseDataType("float32"), std::nullopt);
  EXPECT_EQ(ParseDataType(""), std::nullopt);
}

TEST(DataTypeTest, SizesAreThoseOfTheFormats) {
  EXPECT_EQ(ElementSize(DataType::kF32), 4);
  EXPECT_EQ(ElementSize(DataType::kF16), 2);
  EXPECT_EQ(ElementSize(DataType::kBF16), 2);
}

TEST(TensorDescTest, CountsAndSpells) {
  const TensorDesc desc{DataType::kF16, {128, 8, 3, 5}};
  EXPECT_EQ(NumElements(desc.dims), 128 * 8 * 3 * 5);
  EXPECT_EQ(SizeBytes(desc), 2 * 128 * 8 * 3 * 5);
  EXPECT_EQ(ToString(desc), "f16[128,8,3,5]");
}

TEST(TensorDescTest, ScalarHasOneElement) {
  const TensorDesc desc{DataType::kF32, {}};
  EXPECT_EQ(NumElements(desc.dims), 1);
  EXPECT_EQ(ToString(desc), "f32[]");
}

TEST(PlanTest, GradeNamesReadBack) {
  for (Grade grade : {Grade::kFp32, Grade::kTf32}) {
    EXPECT_EQ(ParseGrade(GradeName(grade)), grade);
  }
  EXPECT_EQ(ParseGrade("fp64"), std::nullopt);
}

TEST(PlanTest, ResultsFollowTheInputs) {
  Plan plan;
  plan.inputs.resize(3);
  EXPECT_EQ(ResultOf(plan, 2), ValueId{5});
}

TEST(ErrorsTest, DetailSurvivesInTheStatus) {
  ErrorDetail detail;
  detail.field = "ops[3]";
  detail.value = std::string("a:1\0b", 5);
  detail.hint = "12:";
  detail.compile_log = std::string(70000, 'x');
  detail.generated_source = "line\nline";
  EXPECT_EQ(DetailOf(WithDetail(absl::InternalError("no"), detail)), detail);
}

TEST(ErrorsTest, StatusWithoutDetailHasAnEmptyOne) {
  EXPECT_EQ(DetailOf(absl::InternalError("no")), ErrorDetail());
  EXPECT_EQ(DetailOf(absl::OkStatus()), ErrorDetail());
}

TEST(ErrorsTest, MessageNamesFieldProblemValueAndLimit) {
  const absl::Status status =
      InvalidField("ops[1].conv.groups", "is out of range", "0", "1 to 9");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "ops[1].conv.groups: is out of range (got 0, allowed: 1 to 9)");
  EXPECT_EQ(DetailOf(status).field, "ops[1].conv.groups");
  EXPECT_EQ(DetailOf(status).value, "0");
  EXPECT_EQ(DetailOf(status).limit, "1 to 9");
  EXPECT_EQ(UnknownField("f", "p", "v", "l").code(),
            absl::StatusCode::kUnimplemented);
}

TEST(OpTableTest, RowsAreSortedAndFoundByKindNameAndAlias) {
  std::set<std::string_view> names;
  int last = 0;
  for (const OpInfo& info : AllOps()) {
    EXPECT_GT(static_cast<int>(info.kind), last);
    last = static_cast<int>(info.kind);
    EXPECT_EQ(FindOp(info.kind), &info);
    EXPECT_EQ(FindOpByName(info.name), &info);
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(DefaultAttributes(info).index(), info.attributes) << info.name;
  }
  EXPECT_EQ(FindOpByName("max")->kind, OpKind::kAmax);
  EXPECT_EQ(FindOpByName("min")->kind, OpKind::kAmin);
}

TEST(OpTableTest, UnknownOpsAreNotFound) {
  EXPECT_EQ(FindOp(static_cast<OpKind>(0)), nullptr);
  EXPECT_EQ(FindOp(static_cast<OpKind>(999)), nullptr);
  EXPECT_EQ(FindOpByName("conv3d"), nullptr);
  EXPECT_EQ(FindOpByName(""), nullptr);
  EXPECT_EQ(OpName(static_cast<OpKind>(999)), "unknown");
}

TEST(NearestNameTest, FindsSlipsOfTheKeyboardOnly) {
  const std::vector<std::string_view> names = {"conv2d", "tanh", "amax"};
  EXPECT_EQ(NearestName("conv2", names), "conv2d");
  EXPECT_EQ(NearestName("tahn", names), "");
  EXPECT_EQ(NearestName("tan", names), "tanh");
  EXPECT_EQ(NearestName("cnov2d", names), "conv2d");
  EXPECT_EQ(NearestName("dropout", names), "");
  EXPECT_EQ(DidYouMean("conv2", names), "; did you mean 'conv2d'?");
  EXPECT_EQ(DidYouMean("dropout", names), "");
}

}  // namespace
}  // namespace kiln
