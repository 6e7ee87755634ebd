// Stands in for kilnd in the roles of its child processes and misbehaves as
// told: a worker by a job's `variant` (or, before it is ready, by the path of
// NVRTC), an executor by the name of its device.

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "server/child_process.h"
#include "server/ipc.pb.h"
#include "server/ipc_channel.h"

namespace kiln {
namespace {

[[noreturn]] void Hang() {
  while (true) pause();
}

void WriteRaw(int fd, std::string_view bytes) {
  if (write(fd, bytes.data(), bytes.size()) < 0) _exit(1);
}

int OpenDescriptors() {
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count - 3;  // ".", "..", and the folder's own
}

// One "NAME=value" a line, then what the process was given beside it.
std::string Surroundings() {
  std::string text;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    text += std::string(*entry) + "\n";
  }
  char folder[256];
  text += std::string("cwd ") + getcwd(folder, sizeof(folder)) + "\n";
  text += "descriptors " + std::to_string(OpenDescriptors()) + "\n";
  text += "group " + std::string(getpgrp() == getpid() ? "own" : "shared");
  return text;
}

// True the first time in a test: `path` is made then.
bool FirstTime(const std::string& path) {
  return access(path.c_str(), F_OK) != 0;
}

void CrashOnce(const std::string& path) {
  if (!FirstTime(path)) return;
  fclose(fopen(path.c_str(), "w"));
  raise(SIGSEGV);
}

void Misbehave(const std::string& variant, int fd) {
  if (variant == "hang") Hang();
  if (variant == "crash") raise(SIGSEGV);
  if (variant == "exit") _exit(3);
  if (variant == "close") {
    close(fd);
    Hang();
  }
  if (variant == "garbage") {
    WriteRaw(fd, std::string(64, '\xff'));
    Hang();
  }
  if (variant == "no message") {
    WriteRaw(fd, std::string("\x04\0\0\0\0\0\0\0\xff\xff\xff\xff", 12));
    Hang();
  }
  if (variant == "half a message") {
    WriteRaw(fd, std::string("\x40\0\0\0\0\0\0\0half", 12));
    std::abort();
  }
  if (variant.rfind("delay ", 0) == 0) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::stoi(variant.substr(6))));
  }
  if (variant.rfind("crash once ", 0) == 0) CrashOnce(variant.substr(11));
}

ipc::Reply AnswerCompile(const ipc::Request& request) {
  const std::string& variant = request.compile().variant();
  ipc::Reply reply;
  reply.set_id(request.id() + (variant == "wrong id" ? 1 : 0));
  if (variant == "refuse") {
    reply.mutable_failure()->set_code(3);
    reply.mutable_failure()->set_message("refused");
    reply.mutable_failure()->mutable_detail()->set_field("ops[0]");
  } else if (variant == "give up") {
    reply.mutable_failure()->set_code(4);
  } else if (variant == "grow") {
    reply.set_resident_bytes(int64_t{2} << 30);
    reply.mutable_compiled()->set_artifact("large");
  } else if (variant == "surroundings") {
    reply.mutable_compiled()->set_artifact(Surroundings());
  } else {
    reply.mutable_compiled()->set_artifact("pid " + std::to_string(getpid()));
  }
  return reply;
}

ipc::Reply AnswerAsExecutor(const ipc::Request& request,
                            const std::string& device) {
  ipc::Reply reply;
  reply.set_id(request.id());
  if (device == "poisoned" && request.has_execute()) {
    reply.set_fatal(true);
    reply.mutable_failure()->set_code(10);
    reply.mutable_failure()->set_message("illegal address");
  } else if (device == "always asks" ||
             (request.has_execute() && request.execute().artifact().empty())) {
    reply.mutable_need_artifact();
  } else if (request.has_execute()) {
    reply.mutable_executed()->set_device_us(
        static_cast<int64_t>(request.execute().artifact().size()));
  } else {
    reply.mutable_described()->set_device(device);
    reply.mutable_described()->set_target("cpu");
  }
  return reply;
}

// The device "uuid in PATH" has the UUID that stands there when it starts.
std::string UuidOf(const std::string& device) {
  constexpr std::string_view kPrefix = "uuid in ";
  if (device.rfind(kPrefix, 0) != 0) return "";
  std::ifstream file(device.substr(kPrefix.size()));
  std::string uuid;
  std::getline(file, uuid);
  return uuid;
}

int Serve(int fd, const std::string& device) {
  IpcChannel channel{FileDescriptor(fd)};
  DieWithParent();
  ipc::Reply ready;
  ready.mutable_ready()->set_uuid(UuidOf(device));
  for (const int number : {75, 90}) {
    ready.mutable_ready()->add_architectures(number);
  }
  if (!channel.Send(ready).ok()) return 1;
  while (true) {
    ipc::Request request;
    FileDescriptor descriptor;
    if (!channel.Receive(&request, &descriptor).ok()) return 0;
    if (request.has_compile()) Misbehave(request.compile().variant(), fd);
    const ipc::Reply reply = request.has_compile()
                                 ? AnswerCompile(request)
                                 : AnswerAsExecutor(request, device);
    if (!channel.Send(reply).ok()) return 0;
  }
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  std::string device;
  std::string nvrtc;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--device") device = argv[i + 1];
    if (std::string_view(argv[i]) == "--nvrtc") nvrtc = argv[i + 1];
  }
  kiln::Misbehave(nvrtc, kiln::kChildSocket);
  kiln::Misbehave(device, kiln::kChildSocket);
  return kiln::Serve(kiln::kChildSocket, device);
}
