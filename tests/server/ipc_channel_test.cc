#include "server/ipc_channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <string>
#include <thread>
#include <utility>

#include "server/ipc.pb.h"

namespace kiln {
namespace {

class IpcChannelTest : public ::testing::Test {
 protected:
  IpcChannelTest() : IpcChannelTest(*IpcChannel::MakePair()) {}

  void WriteRaw(const std::string& bytes) {
    ASSERT_EQ(write(near_.fd(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }

  static ipc::Reply Text(const std::string& text) {
    ipc::Reply reply;
    reply.mutable_compiled()->set_artifact(text);
    return reply;
  }

  static std::string Header(uint32_t size, uint32_t descriptors) {
    std::string bytes(8, '\0');
    for (int i = 0; i < 4; ++i) {
      bytes[i] = static_cast<char>(size >> (8 * i));
      bytes[4 + i] = static_cast<char>(descriptors >> (8 * i));
    }
    return bytes;
  }

  IpcChannel near_;
  IpcChannel far_;
  ipc::Reply reply_;
  FileDescriptor descriptor_;

 private:
  explicit IpcChannelTest(std::pair<FileDescriptor, FileDescriptor> pair)
      : near_(std::move(pair.first)), far_(std::move(pair.second)) {}
};

TEST_F(IpcChannelTest, CarriesMessagesInOrder) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(near_.Send(Text(std::to_string(i))).ok());
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(far_.Receive(&reply_, &descriptor_).ok());
    EXPECT_EQ(reply_.compiled().artifact(), std::to_string(i));
    EXPECT_FALSE(descriptor_.valid());
  }
}

TEST_F(IpcChannelTest, HasNothingBeforeAMessageIsWhole) {
  EXPECT_FALSE(*far_.TryReceive(&reply_, &descriptor_));
  WriteRaw(Header(10, 0) + "12345");
  EXPECT_FALSE(*far_.TryReceive(&reply_, &descriptor_));
}

TEST_F(IpcChannelTest, CarriesLargeArtifactsWithoutBlockingTheSender) {
  const std::string large(40 << 20, 'x');
  ASSERT_TRUE(near_.Queue(Text(large)).ok());
  ASSERT_TRUE(near_.Flush().ok());
  EXPECT_TRUE(near_.has_output());  // no socket buffer is that large
  std::thread receiver(
      [this] { ASSERT_TRUE(far_.Receive(&reply_, &descriptor_).ok()); });
  while (near_.has_output()) ASSERT_TRUE(near_.Flush().ok());
  receiver.join();
  EXPECT_EQ(reply_.compiled().artifact(), large);
}

TEST_F(IpcChannelTest, CarriesDescriptorsWithTheirMessages) {
  for (int i = 0; i < 3; ++i) {
    FileDescriptor memory(memfd_create("test", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(memory.get(), 100 + i), 0);
    ASSERT_TRUE(near_.Send(Text("with"), std::move(memory)).ok());
    ASSERT_TRUE(near_.Send(Text("without")).ok());
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(far_.Receive(&reply_, &descriptor_).ok());
    struct stat info {};
    ASSERT_EQ(fstat(descriptor_.get(), &info), 0);
    EXPECT_EQ(info.st_size, 100 + i);
    EXPECT_NE(fcntl(descriptor_.get(), F_GETFD) & FD_CLOEXEC, 0);
    ASSERT_TRUE(far_.Receive(&reply_, &descriptor_).ok());
    EXPECT_FALSE(descriptor_.valid());
  }
}

TEST_F(IpcChannelTest, RefusesToSendMoreThanTheLimitAndStaysUsable) {
  const std::string too_large(kMaxIpcMessageBytes + 1, 'x');
  EXPECT_TRUE(absl::IsResourceExhausted(near_.Queue(Text(too_large))));
  ASSERT_TRUE(near_.Send(Text("small")).ok());
  EXPECT_TRUE(far_.Receive(&reply_, &descriptor_).ok());
}

// Prevents that a broken child makes the front reserve gigabytes.
TEST_F(IpcChannelTest, RefusesAnAnnouncedSizeOverTheLimit) {
  WriteRaw(Header(kMaxIpcMessageBytes + 1, 0));
  EXPECT_TRUE(
      absl::IsDataLoss(far_.TryReceive(&reply_, &descriptor_).status()));
}

TEST_F(IpcChannelTest, RefusesBytesThatAreNoMessage) {
  WriteRaw(Header(4, 0) + "\xff\xff\xff\xff");
  EXPECT_TRUE(
      absl::IsDataLoss(far_.TryReceive(&reply_, &descriptor_).status()));
}

TEST_F(IpcChannelTest, RefusesADescriptorThatDoesNotCome) {
  WriteRaw(Header(0, 1));
  EXPECT_TRUE(
      absl::IsDataLoss(far_.TryReceive(&reply_, &descriptor_).status()));
}

TEST_F(IpcChannelTest, RefusesMoreDescriptorsThanFramesHave) {
  WriteRaw(Header(0, 2));
  EXPECT_TRUE(
      absl::IsDataLoss(far_.TryReceive(&reply_, &descriptor_).status()));
}

TEST_F(IpcChannelTest, SaysWhenThePeerIsGone) {
  near_.~IpcChannel();
  new (&near_) IpcChannel(FileDescriptor());
  EXPECT_TRUE(absl::IsUnavailable(far_.Receive(&reply_, &descriptor_)));
  EXPECT_TRUE(absl::IsUnavailable(far_.Send(Text("anyone?"))));
}

// Prevents that any bytes of a peer crash the reader.
TEST(IpcChannelFuzzTest, AnswersAnyBytesWithMessagesOrAnError) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 2'000; ++round) {
    auto pair = IpcChannel::MakePair();
    IpcChannel channel(std::move(pair->second));
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 5);
    ASSERT_GE(write(pair->first.get(), bytes.data(), bytes.size()), 0);
    pair->first.Reset();
    ipc::Reply reply;
    FileDescriptor descriptor;
    absl::StatusOr<bool> received = true;
    while (received.ok() && *received) {
      received = channel.TryReceive(&reply, &descriptor);
    }
    EXPECT_FALSE(received.ok());  // all bytes are read, then the file ends
  }
}

}  // namespace
}  // namespace kiln
