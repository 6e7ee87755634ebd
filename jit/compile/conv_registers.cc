// Of ConvGeometry: registers of warpgroups' threads, and what producers have on
// its way in theirs.
#include <algorithm>

#include "jit/compile/conv_geometry.h"

namespace kiln {
namespace {

constexpr int64_t kRegisters = 65536;  // of a multiprocessor
// Of a producer's thread.
constexpr int64_t kFewestProducerRegisters = 64;
constexpr int64_t kRegistersOfCopies = 40;  // behind the threads' backs
// Of one that turns lines; of three eights of matrices at once.
constexpr int64_t kRegistersOfTurning = 64;
constexpr int64_t kMostRegistersOfTurning = 72;
// Of two beside two groups; and where they keep more places, in a phase of a
// transposed convolution whose pixels are rows, as of one that brings all.
constexpr int64_t kProducerRegisters = 80;
constexpr int64_t kMostProducerRegisters = 88;
// Of two beside one group, which has all that it can take, or beside two whose
// input has one part and comes in several chunks: their sums leave room.
constexpr int64_t kAmpleProducerRegisters = 112;
// Of pairs of columns, which have fewer words than octets; and of those that
// are split. With eight and six one tile of nine in three types spilled.
constexpr int kPairsAtOnce = 6;
constexpr int kSplitPairsAtOnce = 5;
constexpr int64_t kMaxLaunchRegisters = 200;  // with which there are enough
constexpr int64_t kMaxConsumerRegisters = 240;

}  // namespace

int64_t ConvGeometry::launch_registers() const {
  return kRegisters / (threads() * resident_blocks) / 8 * 8;
}
bool ConvGeometry::takes_eight_octets() const {
  return !splits_input && chunks() > 1;
}
int64_t ConvGeometry::producer_registers() const {
  if (launch_registers() > kMaxLaunchRegisters) return 0;
  if (launch_registers() < kFewestProducerRegisters) return 0;
  if (takes_lines) return kRegistersOfCopies;
  if (turns_lines) {
    return turning().at_once < 3 ? kRegistersOfTurning
                                 : kMostRegistersOfTurning;
  }
  const bool has_many_places = !channel_rows && phases(1) > 1;
  const int64_t wanted =
      holds_images() && groups() > 2          ? kFewestProducerRegisters
      : producers == 1                        ? kMostProducerRegisters
      : groups() == 1                         ? kAmpleProducerRegisters
      : groups() == 2 && takes_eight_octets() ? kAmpleProducerRegisters
      : groups() == 2 && has_many_places      ? kMostProducerRegisters
      : groups() == 2                         ? kProducerRegisters
                                              : kFewestProducerRegisters;
  return LeftForConsumers(wanted) > launch_registers() ? wanted : 0;
}
int64_t ConvGeometry::consumer_registers() const {
  const int64_t each = producer_registers() == 0
                           ? launch_registers()
                           : LeftForConsumers(producer_registers());
  return std::min(each, kMaxConsumerRegisters);
}
int64_t ConvGeometry::LeftForConsumers(int64_t of_producer) const {
  const int64_t all = launch_registers() * (groups() + producers);
  return (all - producers * of_producer) / groups() / 8 * 8;
}
int ConvGeometry::octets_at_once() const {
  const int64_t registers =
      producer_registers() == 0 ? launch_registers() : producer_registers();
  if (batches_ahead > 0) return registers < kProducerRegisters ? 2 : 4;
  // Beside them nothing is stored, so the compiler needs no more.
  if (holds_images() && registers == kFewestProducerRegisters) return 4;
  if (spares_registers || registers < kProducerRegisters) return 2;
  if (pairs_columns) return splits_input ? kSplitPairsAtOnce : kPairsAtOnce;
  return registers >= kAmpleProducerRegisters && takes_eight_octets() ? 8 : 4;
}

}  // namespace kiln
