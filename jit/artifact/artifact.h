#ifndef KILN_JIT_ARTIFACT_ARTIFACT_H_
#define KILN_JIT_ARTIFACT_ARTIFACT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "jit/artifact/target.h"
#include "jit/plan/plan.h"
#include "jit/plan/tensor_desc.h"

namespace kiln {

// Everything needed to run one plan on one target: machine code and the record
// of how to launch it. Written by jit/compile, read by jit/run; stored and
// sent as the bytes of kiln.v1.Artifact. All types here are values.

// Grows when a reader of the old format would misread the new one. Readers
// refuse formats they do not know.
inline constexpr uint32_t kArtifactFormat = 1;

// One __global__ function of a cubin.
struct KernelEntry {
  std::string symbol;
  int registers = 0;                     // per thread
  int64_t static_shared_bytes = 0;       // per block
  int64_t max_dynamic_shared_bytes = 0;  // the most any step asks for
  int64_t local_bytes = 0;               // per thread; 0 means no spills
  friend bool operator==(const KernelEntry&, const KernelEntry&) = default;
};

struct Module {
  std::string cubin;
  std::string sha256;  // of `cubin`, 64 hex digits
  std::string source;  // the generated translation unit, for people
  std::vector<KernelEntry> entries;
  friend bool operator==(const Module&, const Module&) = default;
};

enum class SlotRole : uint8_t { kInput = 1, kParameter = 2, kOutput = 3 };

// A tensor that the caller binds. Slots are the canonical inputs, then the
// outputs.
struct Slot {
  TensorDesc desc;
  int64_t min_bytes = 0;  // the tensor's bytes
  int64_t align = 1;      // of the bound address, in bytes
  SlotRole role = SlotRole::kInput;
  friend bool operator==(const Slot&, const Slot&) = default;
};

// Memory that the runner provides beside the slots.
enum class Area : uint8_t {
  kWorkspace = 1,  // contents undefined before each launch
  kPrepared = 2,   // filled by the prepare steps, kept between launches
};

enum class ZeroWhen : uint8_t {
  kEachLaunch = 1,  // a memset on the stream before the first launch step
  kOnce = 2,        // at allocation, and after a failed launch; a launch goes
                    // on from what the one before has left, so two streams
                    // must not share it
};

struct ZeroRange {
  Area area = Area::kWorkspace;
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  ZeroWhen when = ZeroWhen::kEachLaunch;
  friend bool operator==(const ZeroRange&, const ZeroRange&) = default;
};

enum class ArgKind : uint8_t {
  kSlot = 1,       // pointer: address bound to `slot` + offset_bytes
  kWorkspace = 2,  // pointer: workspace + offset_bytes
  kPrepared = 3,   // pointer: prepared area + offset_bytes
  kConstant = 4,   // `bytes`, passed by value
  kTensorMap = 5,  // CUtensorMap built at bind time from `tensor_map`
};

// A CUtensorMap over one slot, as cuTensorMapEncodeTiled takes it. Extents and
// boxes are innermost first; strides are in bytes, without the innermost.
struct TensorMapSpec {
  uint32_t data_type = 0;  // CUtensorMapDataType
  std::vector<uint64_t> global_dim;
  std::vector<uint64_t> global_strides;
  std::vector<uint32_t> box_dim;
  std::vector<uint32_t> element_strides;
  uint32_t interleave = 0;
  uint32_t swizzle = 0;
  uint32_t l2_promotion = 0;
  uint32_t oob_fill = 0;
  friend bool operator==(const TensorMapSpec&, const TensorMapSpec&) = default;
};

// One kernel argument, in the order of the kernel's parameters.
struct Arg {
  ArgKind kind = ArgKind::kSlot;
  int slot = 0;              // kSlot, kTensorMap
  int64_t offset_bytes = 0;  // kSlot, kWorkspace, kPrepared, kTensorMap
  std::string bytes;         // kConstant
  TensorMapSpec tensor_map;  // kTensorMap
  friend bool operator==(const Arg&, const Arg&) = default;
};

// One kernel launch.
struct Step {
  int module = 0;  // index into Artifact::modules
  int entry = 0;   // index into that module's entries
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  std::array<uint32_t, 3> cluster = {1, 1, 1};  // all 1: no cluster launch
  int64_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  bool nonportable_cluster = false;
  // May begin before the launch before it has ended, for whose memory it waits
  // itself (CUDA's attribute of that name; sm_90 and up).
  bool programmatic_stream_serialization = false;
  std::vector<Arg> args;
  friend bool operator==(const Step&, const Step&) = default;
};

// What a device must offer for a variant to be chosen.
struct Requirements {
  int min_sm_count = 0;
  bool cooperative = false;  // the grids must be resident as a whole
  int cluster_size = 0;
  int64_t shared_optin_bytes = 0;
  friend bool operator==(const Requirements&, const Requirements&) = default;
};

struct Variant {
  Requirements requires_;
  int64_t workspace_bytes = 0;
  int64_t prepared_bytes = 0;
  std::vector<int> prepared_from;  // slots that the prepare steps read
  std::vector<ZeroRange> zero;
  std::vector<Step> prepare;
  std::vector<Step> launch;
  friend bool operator==(const Variant&, const Variant&) = default;
};

struct Artifact {
  uint32_t format = kArtifactFormat;
  std::string key;       // 64 hex digits: SHA-256 of key_text
  std::string key_text;  // readable; docs/cache.md
  Plan canonical_plan;
  Target target;
  std::vector<Module> modules;  // none for the cpu target
  std::vector<Slot> slots;
  // The first whose requirements hold on the device is used; the last requires
  // nothing. None for the cpu target, which evaluates canonical_plan.
  std::vector<Variant> variants;
};

}  // namespace kiln

#endif  // KILN_JIT_ARTIFACT_ARTIFACT_H_
