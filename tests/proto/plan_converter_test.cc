#include "proto/plan_converter.h"

#include <gtest/gtest.h>

#include <functional>

#include "jit/plan/canonical.h"
#include "jit/plan/errors.h"
#include "jit/plan/plan_text.h"
#include "jit/plan/validate.h"
#include "tests/jit/plan/parse_plan.h"
#include "tests/jit/plan/plan_generator.h"
#include "tests/jit/plan/plan_mutator.h"

namespace kiln {
namespace {

const char kBase[] =
    "input x: f16[2,4,8,8]\n"
    "param w: f16[4,4,3,3]\n"
    "y = conv2d(x, w)\n"
    "z = max_pool2d(y, kernel_size=2)\n"
    "g = gelu(z)\n"
    "c = cast(g, dtype=bf16)\n"
    "output c\n";

v1::Plan BaseMessage() { return ToProto(MustParsePlan(kBase)); }

void ExpectError(const std::function<void(v1::Plan*)>& change,
                 absl::StatusCode code, const std::string& field,
                 const std::string& value) {
  v1::Plan message = BaseMessage();
  change(&message);
  const absl::Status status = FromProto(message).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(DetailOf(status).field, field) << status;
  EXPECT_EQ(DetailOf(status).value, value) << status;
  EXPECT_FALSE(DetailOf(status).limit.empty()) << status;
}

TEST(PlanConverterTest, RandomPlansRoundTrip) {
  PlanGenerator generator(11, {12, 2048, true});
  for (int i = 0; i < 3000; ++i) {
    const Plan plan = generator.Next();
    const absl::StatusOr<Plan> back = FromProto(ToProto(plan));
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << ToText(plan);
    ASSERT_EQ(*back, plan) << ToText(plan) << ToText(*back);
  }
}

TEST(PlanConverterTest, MessageRoundTripsThroughThePlan) {
  const v1::Plan message = BaseMessage();
  const absl::StatusOr<Plan> plan = FromProto(message);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ToProto(*plan).SerializeAsString(), message.SerializeAsString());
}

TEST(PlanConverterTest, EmptyMessageIsAnEmptyPlan) {
  const absl::StatusOr<Plan> plan = FromProto(v1::Plan());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(*plan, Plan());
}

TEST(PlanConverterTest, FillsPyTorchsDefaultsIn) {
  v1::Plan message;
  v1::PlanInput* const input = message.add_inputs();
  input->mutable_desc()->set_dtype(v1::F16);
  for (int i = 0; i < 4; ++i) input->mutable_desc()->add_dims(4);
  const auto add = [&](OpKind kind) {
    v1::Op* const op = message.add_ops();
    op->set_kind(static_cast<uint32_t>(kind));
    op->add_operands()->set_value(0);
    return op;
  };
  add(OpKind::kMaxPool2d)->mutable_pool()->add_kernel_size(3);
  add(OpKind::kGroupNorm)->mutable_group_norm()->set_num_groups(2);
  add(OpKind::kHardtanh);
  add(OpKind::kSum);
  add(OpKind::kElu);
  add(OpKind::kConv2d)->add_operands()->set_value(0);
  message.add_outputs()->set_value(1);

  const absl::StatusOr<Plan> plan = FromProto(message);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->inputs[0].role, InputRole::kActivation);
  EXPECT_EQ(plan->grade, Grade::kFp32);
  const auto& pool = std::get<PoolAttributes>(plan->ops[0].attributes);
  EXPECT_EQ(pool.stride, (Pair{3, 3}));
  EXPECT_TRUE(pool.count_include_pad);
  EXPECT_EQ(std::get<GroupNormAttributes>(plan->ops[1].attributes).eps, 1e-5f);
  EXPECT_EQ(plan->ops[1].operands.size(), 3u);
  EXPECT_EQ(std::get<ClampAttributes>(plan->ops[2].attributes),
            (ClampAttributes{-1.0f, 1.0f}));
  EXPECT_EQ(std::get<ReduceAttributes>(plan->ops[3].attributes),
            ReduceAttributes());
  EXPECT_EQ(std::get<EluAttributes>(plan->ops[4].attributes).alpha, 1.0f);
  EXPECT_EQ(std::get<ConvAttributes>(plan->ops[5].attributes),
            ConvAttributes());
  EXPECT_EQ(plan->outputs[0].dtype, DataType::kF16);
  EXPECT_TRUE(ValidatePlan(*plan).ok()) << ValidatePlan(*plan).status();
}

TEST(PlanConverterTest, SpatialAttributesHoldOneOrTwoEntries) {
  v1::Plan message = BaseMessage();
  auto* const stride = message.mutable_ops(0)->mutable_conv()->mutable_stride();
  stride->Clear();
  stride->Add(2);
  const absl::StatusOr<Plan> plan = FromProto(message);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(std::get<ConvAttributes>(plan->ops[0].attributes).stride,
            (Pair{2, 2}));

  const auto code = absl::StatusCode::kInvalidArgument;
  ExpectError(
      [](v1::Plan* p) { p->mutable_ops(0)->mutable_conv()->add_stride(3); },
      code, "ops[0].conv.stride", "3");
  ExpectError(
      [](v1::Plan* p) {
        p->mutable_ops(0)->mutable_conv()->add_output_padding(3);
      },
      code, "ops[0].conv.output_padding", "3");
  ExpectError(
      [](v1::Plan* p) { p->mutable_ops(1)->mutable_pool()->add_dilation(3); },
      code, "ops[1].pool.dilation", "3");
}

TEST(PlanConverterTest, AttributesBelongToTheKind) {
  const auto code = absl::StatusCode::kInvalidArgument;
  ExpectError(
      [](v1::Plan* p) { p->mutable_ops(0)->mutable_elu()->set_alpha(1); }, code,
      "ops[0].attributes", "elu");
  ExpectError([](v1::Plan* p) { p->mutable_ops(0)->set_kind(53); }, code,
              "ops[0].attributes", "conv");
}

TEST(PlanConverterTest, AttributesWithoutADefaultAreNeeded) {
  const auto code = absl::StatusCode::kInvalidArgument;
  ExpectError([](v1::Plan* p) { p->mutable_ops(1)->clear_attributes(); }, code,
              "ops[1].pool", "nothing");
  ExpectError(
      [](v1::Plan* p) {
        p->mutable_ops(1)->mutable_pool()->clear_kernel_size();
      },
      code, "ops[1].pool.kernel_size", "nothing");
  ExpectError([](v1::Plan* p) { p->mutable_ops(3)->clear_attributes(); }, code,
              "ops[3].cast", "nothing");
  ExpectError(
      [](v1::Plan* p) {
        p->mutable_ops(3)->mutable_cast()->set_dtype(v1::DATA_TYPE_UNSPECIFIED);
      },
      code, "ops[3].cast.dtype", "unspecified");
  ExpectError([](v1::Plan* p) { p->mutable_inputs(1)->clear_desc(); }, code,
              "inputs[1].desc.dtype", "unspecified");
}

TEST(PlanConverterTest, NumbersOfTheFutureAreUnimplemented) {
  const auto code = absl::StatusCode::kUnimplemented;
  ExpectError([](v1::Plan* p) { p->mutable_ops(2)->set_kind(999); }, code,
              "ops[2].kind", "999");
  ExpectError([](v1::Plan* p) { p->mutable_ops(2)->set_kind(65536 + 52); },
              code, "ops[2].kind", "65588");
  ExpectError([](v1::Plan* p) { p->set_grade(static_cast<v1::Grade>(9)); },
              code, "grade", "9");
  ExpectError(
      [](v1::Plan* p) {
        p->mutable_inputs(0)->set_role(static_cast<v1::InputRole>(9));
      },
      code, "inputs[0].role", "9");
  ExpectError(
      [](v1::Plan* p) {
        p->mutable_inputs(0)->mutable_desc()->set_dtype(
            static_cast<v1::DataType>(9));
      },
      code, "inputs[0].desc.dtype", "9");
  ExpectError(
      [](v1::Plan* p) {
        p->mutable_inputs(0)->mutable_desc()->set_layout(
            static_cast<v1::Layout>(9));
      },
      code, "inputs[0].desc.layout", "9");
  ExpectError(
      [](v1::Plan* p) {
        p->mutable_outputs(0)->set_dtype(static_cast<v1::DataType>(9));
      },
      code, "outputs[0].dtype", "9");
  ExpectError(
      [](v1::Plan* p) {
        p->mutable_ops(2)->mutable_gelu()->set_approximate(
            static_cast<v1::GeluAttributes::Approximate>(9));
      },
      code, "ops[2].gelu.approximate", "9");
}

// Prevents: a newer client's attribute that this build skips, and so a kernel
// that computes something else.
TEST(PlanConverterTest, FieldsOfTheFutureAreUnimplemented) {
  const auto add = [](google::protobuf::Message* message) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(500, 1);
  };
  const auto code = absl::StatusCode::kUnimplemented;
  ExpectError([&](v1::Plan* p) { add(p); }, code, "plan", "field 500");
  ExpectError([&](v1::Plan* p) { add(p->mutable_ops(0)->mutable_conv()); },
              code, "ops[0].conv", "field 500");
  ExpectError([&](v1::Plan* p) { add(p->mutable_inputs(1)->mutable_desc()); },
              code, "inputs[1].desc", "field 500");
}

TEST(TensorDescConverterTest, RoundTrips) {
  const TensorDesc desc{DataType::kBF16, {3, 1, 4}};
  const absl::StatusOr<TensorDesc> back = FromProto(ToProto(desc));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, desc);
}

TEST(GradeConverterTest, UnspecifiedIsFp32) {
  EXPECT_EQ(*FromProto(v1::GRADE_UNSPECIFIED), Grade::kFp32);
  EXPECT_EQ(*FromProto(v1::TF32), Grade::kTf32);
}

void ExpectClientError(const absl::Status& status) {
  EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsUnimplemented(status))
      << status;
  EXPECT_FALSE(DetailOf(status).field.empty()) << status;
}

// Prevents: a request that crashes the daemon between wire and key.
// Negative control: without the bound of spatial entries and the check that a
// pooling has a kernel size, this test fails.
TEST(HostileMessageTest, EveryDamagedMessageIsAnswered) {
  PlanGenerator generator(13, {8, 2048, true});
  TestRandom random(13);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    Plan damaged = generator.Next();
    const bool damage_bytes = random.OneIn(2);
    if (!damage_bytes) MutatePlan(&random, &damaged);
    std::string bytes = ToProto(damaged).SerializeAsString();
    for (int64_t j = damage_bytes ? 2 : 0; j > 0 && !bytes.empty(); --j) {
      const int64_t size = static_cast<int64_t>(bytes.size());
      bytes[random.Int(0, size - 1)] = static_cast<char>(random.Int(0, 255));
    }
    v1::Plan message;
    if (!message.ParseFromString(bytes)) continue;
    const absl::StatusOr<Plan> plan = FromProto(message);
    const absl::Status status =
        plan.ok() ? Canonicalize(*plan).status() : plan.status();
    if (status.ok()) continue;
    ++refused;
    ExpectClientError(status);
    if (HasFailure()) FAIL() << "message " << i;
  }
  EXPECT_GT(refused, 4000);
}

}  // namespace
}  // namespace kiln
