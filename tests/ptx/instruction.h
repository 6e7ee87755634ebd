#ifndef KILN_TESTS_PTX_INSTRUCTION_H_
#define KILN_TESTS_PTX_INSTRUCTION_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln::ptx {

struct Warp;
struct Instruction;

inline constexpr int kLanes = 32;

// Executes an instruction for the lanes of `mask`, which are at it.
using Handler = void (*)(Warp& warp, const Instruction& instruction,
                         uint32_t mask);

// How the machine goes on behind, or waits in front of, an instruction.
enum class Flow : uint8_t {
  kPlain,
  kPoll,         // others run before the lanes go on
  kTry,          // the same for lanes whose predicate, operand 0, is false
  kBranch,       // to `target`
  kExit,         // of the thread
  kMembers,      // waits for the lanes of a mask, operand `member_mask`
  kWarp,         // waits for all lanes of the warp
  kWarpgroup,    // waits for four warps; called once, for the first of them
  kBarrier,      // waits for warps at a barrier of the block
  kClusterWait,  // waits for all blocks of the cluster
};

// Where an operand lies: from 0 up, bytes into a warp's registers; below,
// the complement of bytes into the constants. Each has a value for every lane:
// 32 words, 32 double words, or one word of 32 predicates.
using Place = int32_t;

// Numbers below 64 bits are held in words.
enum class Width : uint8_t { kPredicate, kWord, kDouble };

// A decoded instruction.
struct Instruction {
  Handler handler = nullptr;
  Flow flow = Flow::kPlain;
  bool guard_is_negated = false;
  uint8_t count = 1;        // of a vector, or of operands
  uint8_t member_mask = 0;  // index of an operand
  Place guard = -1;         // a predicate, or -1
  int32_t line = 0;         // of the text
  int32_t target = 0;       // index of an instruction
  // As Operation::operands says. An address is a place, an offset in bytes and
  // whether the place is of double words.
  const Place* operands = nullptr;
};

// What an opcode needs of its operands.
struct Operation {
  Handler handler = nullptr;
  // A letter for each operand: p, w and d are the widths; a is an address, of
  // either width; v is a list of words, x one of double words, as long as the
  // digit behind it or else `count`; q is a word and a predicate, of which the
  // latter may be left out; ? makes those behind it optional, and the number
  // of operands is then the instruction's count.
  std::string operands;
  Flow flow = Flow::kPlain;
  uint8_t count = 1;
  uint8_t member_mask = 0;
};

// By opcode, such as "add.f32". Some families of names, loads for example, are
// found by FindOperation only.
using OperationTable = std::unordered_map<std::string, Operation>;

// Null if the opcode is not known. `wide`: whether the first register operand
// that is no address has 64 bits, which for loads, stores and conversions may
// differ from the type.
const Operation* FindOperation(const std::string& opcode, bool wide);

// Each adds one file's.
void AddIntegerOperations(OperationTable* table);
void AddFloatOperations(OperationTable* table);
void AddHalfOperations(OperationTable* table);
void AddComparisons(OperationTable* table);
void AddConversions(OperationTable* table);
void AddMemoryOperations(OperationTable* table);
void AddBulkOperations(OperationTable* table);
void AddWarpOperations(OperationTable* table);
void AddProducts(OperationTable* table);

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_INSTRUCTION_H_
