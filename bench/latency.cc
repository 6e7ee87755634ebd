// Time of an in-process launch through jit/run.
//
//   kiln_latency ARTIFACT [REPEATS]
//
// ARTIFACT is what `kiln compile -o` writes, for this machine's cuda:0. Prints
// one line of JSON: microseconds to enqueue a launch, and to enqueue one and
// wait for it, medians.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "jit/run/cuda_device.h"
#include "jit/run/cuda_handles.h"
#include "jit/run/driver_table.h"
#include "jit/run/loaded_artifact.h"
#include "proto/artifact_converter.h"

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

double MedianMicroseconds(int repeats, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const Clock::time_point begin = Clock::now();
    call();
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin)
            .count());
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[repeats / 2];
}

absl::StatusOr<Artifact> ReadArtifact(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  return ParseArtifact(bytes);
}

absl::Status Measure(const std::string& path, int repeats) {
  const absl::StatusOr<Artifact> artifact = ReadArtifact(path);
  if (!artifact.ok()) return artifact.status();
  const absl::StatusOr<DriverTable> driver = DriverTable::Load();
  if (!driver.ok()) return driver.status();
  const absl::StatusOr<CudaDevice> device = DescribeDevice(*driver, 0);
  if (!device.ok()) return device.status();
  const absl::StatusOr<PrimaryContext> context =
      PrimaryContext::Retain(*driver, device->handle);
  if (!context.ok()) return context.status();
  const CurrentContext current(*driver, context->get());
  const absl::StatusOr<CudaStream> stream = CreateStream(*driver);
  if (!stream.ok()) return stream.status();
  const auto loaded = LoadedArtifact::Load(*driver, *device, *artifact);
  if (!loaded.ok()) return loaded.status();

  std::vector<DeviceMemory> memory;
  std::vector<driver::DevicePtr> slots;
  for (const Slot& slot : artifact->slots) {
    auto allocated = DeviceMemory::Allocate(*driver, slot.min_bytes);
    if (!allocated.ok()) return allocated.status();
    memory.push_back(*std::move(allocated));
    slots.push_back(memory.back().get());
  }
  const auto workspace =
      DeviceMemory::Allocate(*driver, (*loaded)->workspace_bytes());
  if (!workspace.ok()) return workspace.status();
  const auto prepared =
      DeviceMemory::Allocate(*driver, (*loaded)->prepared_bytes());
  if (!prepared.ok()) return prepared.status();
  LaunchAreas areas{.workspace = workspace->get(), .prepared = prepared->get()};

  absl::Status status;
  const auto launch = [&] {
    status.Update((*loaded)->Launch(stream->get(), slots, 1, areas));
  };
  const auto wait = [&] { driver->StreamSynchronize(stream->get()); };
  MedianMicroseconds(50, launch);
  wait();
  const double enqueue = MedianMicroseconds(repeats, launch);
  wait();
  const double complete = MedianMicroseconds(repeats, [&] {
    launch();
    wait();
  });
  fmt::print("{{\"enqueue_us\": {:.2f}, \"launch_and_wait_us\": {:.2f}}}\n",
             enqueue, complete);
  return status;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: kiln_latency ARTIFACT [REPEATS]\n");
    return 2;
  }
  const int repeats = argc > 2 ? std::max(std::atoi(argv[2]), 1) : 500;
  const absl::Status status = kiln::Measure(argv[1], repeats);
  if (status.ok()) return 0;
  fmt::print(stderr, "kiln_latency: {}\n", status.ToString());
  return 1;
}
