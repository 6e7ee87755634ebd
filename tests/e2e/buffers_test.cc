#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>

#include "client/unix_socket.h"
#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kElements = 64;
constexpr int64_t kBytes = kElements * 4;

// A compiled y = relu(x * 1.5) and a session to run it in.
class BuffersTest : public testing::Test {
 protected:
  BuffersTest() : client_(daemon_.Connect()) {
    compiled_ = *client_.Compile(SmallPlan(1));
    session_ = *client_.OpenSession();
  }

  SharedBuffer Buffer(int64_t size_bytes) {
    absl::StatusOr<SharedBuffer> buffer = session_->CreateBuffer(size_bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status().ToString();
    return *std::move(buffer);
  }

  absl::Status Execute(const Bindings& bindings) {
    return session_->Execute(compiled_, bindings).status();
  }

  // Whether the front refuses it, naming the binding; behind it the executor
  // checks again.
  bool Refused(const Bindings& bindings) {
    const absl::Status status = Execute(bindings);
    return absl::IsInvalidArgument(status) &&
           DetailOf(status).field.starts_with("bindings");
  }

  Daemon daemon_;
  Client client_;
  CompiledPlan compiled_;
  std::optional<Session> session_;
};

TEST_F(BuffersTest, ExecutesOnSharedMemoryByNameAndPosition) {
  const SharedBuffer x = Buffer(kBytes);
  const SharedBuffer y = Buffer(kBytes);
  for (int64_t i = 0; i < kElements; ++i) {
    x.As<float>()[i] = static_cast<float>(i - 32);
  }
  ASSERT_TRUE(Execute(Bindings().Input("x", x).Output("y", y)).ok());
  EXPECT_EQ(y.As<float>()[0], 0.0f);
  EXPECT_EQ(y.As<float>()[42], 15.0f);
  y.As<float>()[42] = 0;
  ASSERT_TRUE(Execute(Bindings().Input(0, x).Output(0, y)).ok());
  EXPECT_EQ(y.As<float>()[42], 15.0f);
}

TEST_F(BuffersTest, TensorsMayLieInOneBufferSideBySide) {
  const SharedBuffer both = Buffer(2 * kBytes);
  both.As<float>()[3] = 2.0f;
  ASSERT_TRUE(Execute(Bindings().Input(0, both).Output(0, both, kBytes)).ok());
  EXPECT_EQ(both.As<float>()[kElements + 3], 3.0f);
}

// Prevents reads and writes beside the memory that a client registered.
TEST_F(BuffersTest, RefusesEveryRangeOutsideTheBuffer) {
  const SharedBuffer x = Buffer(kBytes);
  const SharedBuffer y = Buffer(kBytes);
  // Aligned ones among them: those that only the range check can refuse.
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  for (const int64_t offset :
       {int64_t{4}, kBytes - 4, kBytes, int64_t{-4}, kMax - 3,
        kMax - kBytes + 1, kMax, kMin, kMin + 4}) {
    EXPECT_TRUE(Refused(Bindings().Input(0, x, offset).Output(0, y))) << offset;
    EXPECT_TRUE(Refused(Bindings().Input(0, x).Output(0, y, offset))) << offset;
  }
  EXPECT_TRUE(Execute(Bindings().Input(0, x).Output(0, y)).ok());
}

// Prevents results that depend on the order in which elements are computed.
TEST_F(BuffersTest, RefusesAnOutputThatOverlapsAnything) {
  const SharedBuffer both = Buffer(2 * kBytes);
  for (const int64_t offset : {int64_t{0}, int64_t{4}, kBytes - 4}) {
    EXPECT_TRUE(Refused(Bindings().Input(0, both).Output(0, both, offset)))
        << offset;
  }
}

TEST_F(BuffersTest, RefusesMisalignedAddresses) {
  const SharedBuffer x = Buffer(2 * kBytes);
  const SharedBuffer y = Buffer(kBytes);
  EXPECT_TRUE(Refused(Bindings().Input(0, x, 2).Output(0, y)));
}

TEST_F(BuffersTest, RefusesMissingAndRepeatedBindings) {
  const SharedBuffer x = Buffer(kBytes);
  const SharedBuffer y = Buffer(kBytes);
  EXPECT_TRUE(Refused(Bindings().Input(0, x)));
  EXPECT_TRUE(Refused(Bindings().Input(0, x).Input(0, x).Output(0, y)));
  const absl::Status named = Execute(Bindings().Input("z", x).Output(0, y));
  EXPECT_TRUE(absl::IsInvalidArgument(named));
  EXPECT_THAT(std::string(named.message()), HasSubstr("allowed: x"));
}

// Prevents use after the end: the id of a buffer that is gone names nothing.
TEST_F(BuffersTest, RefusesBuffersThatWereUnregisteredOrAreOfOthers) {
  const SharedBuffer y = Buffer(kBytes);
  std::string gone;
  {
    const SharedBuffer x = Buffer(kBytes);
    gone = x.id();
  }
  absl::StatusOr<Session> other = client_.OpenSession();
  ASSERT_TRUE(other.ok());
  const absl::StatusOr<SharedBuffer> theirs = other->CreateBuffer(kBytes);
  ASSERT_TRUE(theirs.ok());

  const auto connection = daemon_.OpenConnection();
  for (const std::string& id :
       {gone, theirs->id(), std::string(32, '0'), std::string()}) {
    v1::ExecuteRequest request;
    request.set_session(session_->id());
    request.set_key(compiled_.key);
    request.set_device("cpu");
    v1::Binding* input = request.add_bindings();
    input->set_slot(compiled_.slot_of_input[0]);
    input->set_buffer(id);
    v1::Binding* output = request.add_bindings();
    output->set_slot(compiled_.slot_of_output[0]);
    output->set_buffer(y.id());
    const auto executed = connection->Call(
        connection->executor(), &v1::Executor::Stub::Execute, request);
    EXPECT_TRUE(absl::IsFailedPrecondition(executed.status()))
        << id << ": " << executed.status().ToString();
  }
}

// Prevents a guess at the side socket from reaching a session.
TEST_F(BuffersTest, SideSocketRefusesAWrongToken) {
  const SharedBuffer x = Buffer(kBytes);
  const absl::Status sent =
      client::SendDescriptor((daemon_.folder() / "kilnd.sock.fd").string(),
                             std::string(16, '\1'), 7, STDIN_FILENO);
  EXPECT_FALSE(sent.ok());
}

}  // namespace
}  // namespace kiln::e2e
