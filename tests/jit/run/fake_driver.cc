#include "tests/jit/run/fake_driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <sstream>

namespace kiln {
namespace {

template <typename Function>
Function Control(void* library, const char* symbol) {
  void* address = dlsym(library, symbol);
  if (address == nullptr) std::abort();
  return reinterpret_cast<Function>(address);
}

}  // namespace

FakeDriver::FakeDriver()
    : library_(dlopen(KILN_FAKE_CUDA_PATH, RTLD_NOW | RTLD_LOCAL)),
      table_(DriverTable::Load(KILN_FAKE_CUDA_PATH).value()) {
  Control<void (*)()>(library_, "kiln_fake_reset")();
}

void FakeDriver::Set(const std::string& property, long long value) {
  Control<void (*)(const char*, long long)>(library_, "kiln_fake_set")(
      property.c_str(), value);
}

void FakeDriver::Fail(const std::string& function, driver::Result result) {
  Control<void (*)(const char*, int)>(library_, "kiln_fake_fail")(
      function.c_str(), result);
}

std::vector<std::string> FakeDriver::TakeLog() {
  std::istringstream text(
      Control<const char* (*)()>(library_, "kiln_fake_take_log")());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::string FakeDriver::ForeignHandle(unsigned char id, long long bytes) {
  std::string handle(64, '\0');
  Control<void (*)(unsigned char, long long, char*)>(
      library_, "kiln_fake_foreign_handle")(id, bytes, handle.data());
  return handle;
}

long long FakeDriver::Count(const std::string& kind) const {
  return Control<long long (*)(const char*)>(library_,
                                             "kiln_fake_count")(kind.c_str());
}

}  // namespace kiln
