// The real roles in a program of their own, as kilnd has them.

#include <cstdlib>
#include <string>
#include <string_view>

#include "server/roles.h"

int main(int argc, char** argv) {
  std::string role;
  std::string device;
  std::string nvrtc;
  int fd = -1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--role") role = argv[i + 1];
    if (name == "--device") device = argv[i + 1];
    if (name == "--nvrtc") nvrtc = argv[i + 1];
    if (name == "--fd") fd = std::atoi(argv[i + 1]);
  }
  if (role == "worker") return kiln::RunCompileWorker(fd, nvrtc);
  if (role == "executor") return kiln::RunExecutor(fd, device);
  return 2;
}
