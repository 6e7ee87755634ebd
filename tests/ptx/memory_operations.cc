// Loads, stores and atomics (PTX ISA, section "Data Movement and Conversion").
// Memory is consistent: what a thread writes, all others see at once.
#include "fmt/format.h"
#include "tests/ptx/access.h"
#include "tests/ptx/lanes.h"

namespace kiln::ptx {
namespace {

// The numbers of an instruction in memory, from where lane 0 has its own. T is
// in memory, Register in the register.
template <typename T, typename Register>
void LoadNeighbours(Warp& warp, const Instruction& i, const std::byte* from) {
  const size_t size = sizeof(T) * i.count;
  for (int k = 0; k < i.count; ++k) {
    std::byte* const to = Destination(warp, i.operands[k]);
    ForVectors(~0u, [&](int lane) {
      T value;
      std::memcpy(&value, from + lane * size + k * sizeof(T), sizeof(T));
      Put<Register>(to, lane, static_cast<Register>(value));
    });
  }
}

template <typename T, typename Register>
void StoreNeighbours(Warp& warp, const Instruction& i, std::byte* to) {
  const size_t size = sizeof(T) * i.count;
  for (int k = 0; k < i.count; ++k) {
    const std::byte* const from = Source(warp, i.operands[kAddressPlaces + k]);
    ForVectors(~0u, [&](int lane) {
      const auto value = static_cast<T>(Get<Register>(from, lane));
      std::memcpy(to + lane * size + k * sizeof(T), &value, sizeof(T));
    });
  }
}

// Lanes behind one at the same place may read that if it may.
template <Space kSpace, typename T, typename Register>
void Load(Warp& warp, const Instruction& i, uint32_t mask) {
  const Place* const address = i.operands + i.count;
  const uint64_t size = sizeof(T) * i.count;
  const std::byte* const all =
      FindNeighbours<kSpace>(warp, address, mask, size, Access::kRead);
  if (all != nullptr) return LoadNeighbours<T, Register>(warp, i, all);
  const bool may_share = (mask & ~warp.settled) == 0;
  const std::byte* from = nullptr;
  uint64_t last = 0;  // where that is
  ForLanes(mask, [&](int lane) {
    const uint64_t at = AddressOf(warp, address, lane);
    if (from == nullptr || at != last || !may_share) {
      last = at;
      from = FindIn<kSpace>(warp, i, lane, at, size, size, false);
      if (from == nullptr) return;
      if constexpr (kSpace == Space::kShared) {
        CheckOrder(warp, i, lane, Access::kRead, from, size);
      }
    }
    for (int k = 0; k < i.count; ++k) {
      T value;
      std::memcpy(&value, from + k * sizeof(T), sizeof(T));
      Put<Register>(Destination(warp, i.operands[k]), lane,
                    static_cast<Register>(value));
    }
  });
}

template <Space kSpace, typename T, typename Register>
void Store(Warp& warp, const Instruction& i, uint32_t mask) {
  ++warp.grid->progress;
  const uint64_t size = sizeof(T) * i.count;
  std::byte* const all =
      FindNeighbours<kSpace>(warp, i.operands, mask, size, Access::kWrite);
  if (all != nullptr) return StoreNeighbours<T, Register>(warp, i, all);
  ForLanes(mask, [&](int lane) {
    std::byte* const to = FindIn<kSpace>(
        warp, i, lane, AddressOf(warp, i.operands, lane), size, size, true);
    if (to == nullptr) return;
    if constexpr (kSpace == Space::kShared) {
      CheckOrder(warp, i, lane, Access::kWrite, to, size);
    }
    for (int k = 0; k < i.count; ++k) {
      const Place from = i.operands[kAddressPlaces + k];
      const auto value =
          static_cast<T>(Get<Register>(Source(warp, from), lane));
      std::memcpy(to + k * sizeof(T), &value, sizeof(T));
    }
  });
}

void AtomicAdd(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int lane) {
    std::byte* const to =
        Find(warp, i, lane, Space::kGeneric,
             AddressOf(warp, i.operands + 1, lane), 4, 4, true);
    if (to == nullptr) return;
    uint32_t value;
    std::memcpy(&value, to, 4);
    const auto by =
        Get<uint32_t>(Source(warp, i.operands[1 + kAddressPlaces]), lane);
    Put(Destination(warp, i.operands[0]), lane, value);
    value += by;
    std::memcpy(to, &value, 4);
  });
  ++warp.grid->progress;
}

template <Space kSpace, typename T, typename Register>
void AddAccess(const std::string& space, const std::string& type,
               OperationTable* table) {
  const std::string wide = sizeof(Register) == 8 ? "/wide" : "";
  const std::string list = sizeof(Register) == 8 ? "x" : "v";
  for (const int count : {1, 2, 4}) {
    std::string name = space;
    if (count > 1) name += fmt::format(".v{}", count);
    name += "." + type + wide;
    const auto length = static_cast<uint8_t>(count);
    (*table)["ld" + name] = {Load<kSpace, T, Register>, list + "a",
                             Flow::kPlain, length};
    (*table)["st" + name] = {Store<kSpace, T, Register>, "a" + list,
                             Flow::kPlain, length};
  }
}

// Registers may be wider than what lies in memory.
template <Space kSpace, typename T, typename Wide>
void AddNarrow(const std::string& space, const std::string& kind,
               OperationTable* table) {
  using Word = std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>;
  const std::string type = kind + std::to_string(8 * sizeof(T));
  AddAccess<kSpace, T, Word>(space, type, table);
  AddAccess<kSpace, T, Wide>(space, type, table);
}

template <Space kSpace>
void AddSpace(const std::string& space, OperationTable* table) {
  for (const char* kind : {"u", "b"}) {
    AddNarrow<kSpace, uint8_t, uint64_t>(space, kind, table);
    AddNarrow<kSpace, uint16_t, uint64_t>(space, kind, table);
    AddNarrow<kSpace, uint32_t, uint64_t>(space, kind, table);
  }
  AddNarrow<kSpace, int8_t, int64_t>(space, "s", table);
  AddNarrow<kSpace, int16_t, int64_t>(space, "s", table);
  AddNarrow<kSpace, int32_t, int64_t>(space, "s", table);
  AddAccess<kSpace, uint32_t, uint32_t>(space, "f32", table);
  for (const char* type : {"u64", "b64", "s64", "f64"}) {
    AddAccess<kSpace, uint64_t, uint64_t>(space, type, table);
  }
}

// Of a thread that has not waited for the launch before.
void CheckEarlyAccess(Warp& warp, const Instruction& i, int lane,
                      uint64_t address, uint64_t size, bool writes) {
  if (writes) {
    Fail(warp, i, lane,
         "writes global memory and has not waited for the launch before");
  } else if (warp.grid->memory->IsUnsettled(address, size)) {
    Fail(warp, i, lane,
         "reads what the launch before has written and has not waited for it");
  }
}

void WaitForLaunchBefore(Warp& warp, const Instruction&, uint32_t mask) {
  warp.settled |= mask;
}

// What comes from before the launch before must be there for the next.
void LetNextLaunchBegin(Warp& warp, const Instruction& i, uint32_t mask) {
  const uint32_t early = mask & ~warp.settled;
  if (early == 0) return;
  Fail(warp, i, __builtin_ctz(early),
       "lets the next launch begin and has not waited for the launch before");
}

}  // namespace

std::byte* Find(Warp& warp, const Instruction& i, int lane, Space space,
                uint64_t address, uint64_t size, uint64_t align, bool writes) {
  std::byte* found = nullptr;
  const bool is_shared = space == Space::kShared || space == Space::kCluster ||
                         (space == Space::kGeneric && address >> 32 == 0);
  if (space == Space::kParameter) {
    return const_cast<std::byte*>(warp.grid->parameters) + address;
  }
  if (is_shared) {
    found = FindShared(warp, address, size, align, space != Space::kShared);
  } else {
    found = warp.grid->memory->Find(address, size, align, writes);
    if (found != nullptr && (warp.settled >> lane & 1) == 0) {
      CheckEarlyAccess(warp, i, lane, address, size, writes);
    }
  }
  if (found == nullptr) {
    Fail(warp, i, lane,
         fmt::format("{} bytes of {} memory at {:#x} must not be {}", size,
                     is_shared ? "shared" : "global", address,
                     writes ? "written" : "read"));
  }
  return found;
}

void FailOrder(Warp& warp, const Instruction& i, int lane,
               const std::byte* bytes, int other) {
  const Block& block = *warp.block;
  Fail(warp, i, lane,
       fmt::format("no barrier, or fence for a product, orders this access to "
                   "shared memory at {:#x} after that of {}",
                   bytes - block.shared.data() + kSharedBase,
                   other == static_cast<int>(block.warps.size())
                       ? "a bulk copy"
                       : fmt::format("warp {}", other)));
}

void AddMemoryOperations(OperationTable* table) {
  AddSpace<Space::kGlobal>(".global", table);
  AddSpace<Space::kGlobal>(".const", table);
  AddSpace<Space::kShared>(".shared", table);
  AddSpace<Space::kShared>(".shared::cta", table);
  AddSpace<Space::kCluster>(".shared::cluster", table);
  AddSpace<Space::kGeneric>("", table);
  AddSpace<Space::kParameter>(".param", table);
  for (const char* space : {".global", ".shared", ""}) {
    for (const char* type : {"u32", "s32"}) {
      const std::string name = fmt::format("{}.add.{}", space, type);
      (*table)["atom" + name] = {AtomicAdd, "waw"};
    }
  }
  (*table)["griddepcontrol.wait"] = {WaitForLaunchBefore, ""};
  (*table)["griddepcontrol.launch_dependents"] = {LetNextLaunchBegin, ""};
}

}  // namespace kiln::ptx
