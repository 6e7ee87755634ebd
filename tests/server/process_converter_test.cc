#include "server/process_converter.h"

#include <gtest/gtest.h>

#include <string>

#include "jit/plan/errors.h"
#include "tests/server/cpu_artifact.h"

namespace kiln {
namespace {

TEST(ProcessConverterTest, FailuresComeBackWithTheirDetail) {
  ErrorDetail detail;
  detail.field = "ops[3]";
  detail.value = "7";
  detail.limit = "0 to 6";
  detail.hint = "use another";
  detail.compile_log = "log";
  detail.generated_source = "source";
  const absl::Status status =
      WithDetail(absl::InternalError("rejected"), detail);
  const absl::Status back = FromProto(ToProto(status));
  EXPECT_EQ(back.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(back.message(), "rejected");
  EXPECT_EQ(DetailOf(back), detail);
}

TEST(ProcessConverterTest, EveryCodeComesBack) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "text");
    EXPECT_EQ(FromProto(ToProto(status)), status);
  }
}

// Prevents that a broken child's "failure" reads as success.
TEST(ProcessConverterTest, CodesThatAreNoErrorBecomeInternal) {
  for (const int code : {0, -1, 17, 1'000'000}) {
    ipc::Failure failure;
    failure.set_code(code);
    EXPECT_TRUE(absl::IsInternal(FromProto(failure))) << code;
  }
}

// Prevents that a failed compile's source is too large to be reported.
TEST(ProcessConverterTest, TextsAreCutToWhatAReplyPromises) {
  ErrorDetail detail;
  detail.compile_log = std::string(1 << 20, 'l');
  detail.generated_source = std::string(1 << 20, 's');
  const ipc::Failure failure =
      ToProto(WithDetail(absl::InternalError("rejected"), detail));
  EXPECT_EQ(failure.detail().compile_log().size(), 64u << 10);
  EXPECT_EQ(failure.detail().generated_source().size(), 64u << 10);
}

TEST(ProcessConverterTest, CompileRequestsComeBack) {
  CompileRequest request;
  request.plan = CanonicalOf(kReluPlan);
  request.target = Target{"sm_90a", 132};
  request.toolchain = "aa+bb";
  request.variant = "tuned7";
  const auto back =
      FromProto(ToProto(request, std::chrono::milliseconds(1500)));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(KeyText(*back), KeyText(request));
}

TEST(ProcessConverterTest, RefusesJobsThatAreNotSound) {
  CompileRequest request;
  request.plan = CanonicalOf(kReluPlan);
  request.target = Target{"cpu", 0};
  ipc::CompileJob job = ToProto(request, std::chrono::milliseconds(1));
  job.set_target("toaster");
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(job).status()));
  job.set_target("cpu");
  job.mutable_plan()->mutable_ops(0)->set_kind(4'000'000);
  EXPECT_TRUE(absl::IsUnimplemented(FromProto(job).status()));
  EXPECT_FALSE(FromProto(ipc::CompileJob()).ok());
}

TEST(ProcessConverterTest, DescriptionsComeBack) {
  DeviceDescription description;
  description.device = "cuda:1";
  description.name = "NVIDIA H100";
  description.uuid = "GPU-1234";
  description.target = Target{"sm_90a", 132};
  description.memory_bytes = int64_t{80} << 30;
  const auto back = FromProto(ToProto(description));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->device, description.device);
  EXPECT_EQ(back->name, description.name);
  EXPECT_EQ(back->uuid, description.uuid);
  EXPECT_EQ(back->target, description.target);
  EXPECT_EQ(back->memory_bytes, description.memory_bytes);
  EXPECT_FALSE(FromProto(ipc::Described()).ok());
}

}  // namespace
}  // namespace kiln
