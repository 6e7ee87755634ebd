#ifndef KILN_JIT_ARTIFACT_TARGET_H_
#define KILN_JIT_ARTIFACT_TARGET_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kiln {

// What an artifact is compiled for: an exact architecture and the number of
// its streaming multiprocessors, because whole-grid schedules bake the latter;
// or the reference device. A value. Targets match exactly or not at all.
struct Target {
  std::string arch;  // "sm_90a", or "cpu"
  int sm_count = 0;  // 0 for cpu

  bool is_cpu() const { return arch == "cpu"; }
  friend bool operator==(const Target&, const Target&) = default;
};

// "sm_90a/132" or "cpu". ParseTarget(ToString(t)) equals t.
std::string ToString(const Target& target);

// Reads "cpu", a device name of KnownDevices ("h100-sxm"), "sm_90a/132", or a
// bare architecture ("sm_90a"), which takes the count of the first known
// device with that architecture.
//
// Errors: INVALID_ARGUMENT naming the text and what stands there otherwise;
// UNIMPLEMENTED for an architecture before sm_75. Of later ones the form alone
// is checked, and that they may have their suffix: `a` from sm_90 on, `f` from
// sm_100 on. NVRTC judges whether they exist.
absl::StatusOr<Target> ParseTarget(std::string_view text);

// The target of a CUDA device: `a` is appended on compute capability 9.0,
// whose wgmma instructions need it.
Target TargetOfDevice(int compute_major, int compute_minor, int sm_count);

struct KnownDevice {
  std::string_view name;  // "h100-sxm"
  std::string_view arch;
  int sm_count;
  int boost_clock_mhz;
  int memory_gb_per_s;  // of the data sheet; copies reach some nine tenths
};

// Devices that can be named without being present.
std::span<const KnownDevice> KnownDevices();

// The first of KnownDevices that is `target`; null if none is. Devices may
// share a target and differ in memory: an h200 is found as an h100-sxm.
const KnownDevice* FindKnownDevice(const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_ARTIFACT_TARGET_H_
