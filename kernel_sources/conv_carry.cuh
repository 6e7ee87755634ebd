// What a tile's patch has in common with that of the tile above: the first rows
// of each plane. A stage keeps them, scaled and in parts, so that they need not
// come from memory again.
#ifndef KILN_KERNEL_SOURCES_CONV_CARRY_CUH_
#define KILN_KERNEL_SOURCES_CONV_CARRY_CUH_

#include "conv_stages.cuh"

namespace kiln {

template <typename Spec>
struct ConvCarry {
  using Group = GroupTile<Spec>;
  static constexpr int kPlanes = Spec::kPlanesH * Spec::kPlanesW;
  // Positions of a plane that are carried, and of the patch those that are not.
  static constexpr int kOfPlane = Spec::kCarriedRows * Spec::kRowPitch;
  static constexpr int kFresh = Group::kPatch - kPlanes * kOfPlane;
  static_assert(kOfPlane == 0 ||
                    (Spec::kScales && Spec::kStages > Group::Tile::kChunks),
                "A stage is filled again behind a vote of all threads that "
                "take rows from it.");
  static_assert(kOfPlane == 0 || (Spec::kImages == 1 && Spec::kProducers == 1),
                "One producer has both tiles of one image.");
  static_assert(kOfPlane == 0 ||
                    Spec::kCarriedRows + Spec::kStepH == Spec::kPlaneHeight,
                "A tile has what the one above has behind its first rows.");

  // How many positions of a patch come from memory, and which is the i-th of
  // them.
  static __device__ int CountOf(bool carries) {
    return carries ? kFresh : Group::kPatch;
  }
  static __device__ int PositionOf(int i, bool carries) {
    if (kOfPlane == 0 || !carries) return i;
    if (kPlanes == 1) return i + kOfPlane;
    return i + (i / (Group::kPlane - kOfPlane) + 1) * kOfPlane;
  }

  // Copies the rest from the patch `above`, by kThreads threads.
  template <int kThreads>
  static __device__ void Take(const uint4* above, uint4* here, int thread) {
    if constexpr (kOfPlane > 0) {
      constexpr int kTogether = Group::kOctetsOfRow;
      constexpr int kUnits = Group::kOctets * kPlanes * kOfPlane;
#pragma unroll 2
      for (int i = thread; i < kUnits; i += kThreads) {
        const int place = i / kTogether % kOfPlane;
        const int plane = i / (kTogether * kOfPlane) % kPlanes;
        const int octet =
            i / (kTogether * kOfPlane * kPlanes) * kTogether + i % kTogether;
        const int position = plane * Group::kPlane + place;
        const int to = Group::UnitOf(octet, position);
        const int from = UnitBelow(to, octet, position);
        uint4 parts[Spec::kInputParts];
#pragma unroll
        for (int part = 0; part < Spec::kInputParts; ++part) {
          parts[part] = above[from + part * Group::kPart];
        }
#pragma unroll
        for (int part = 0; part < Spec::kInputParts; ++part) {
          here[to + part * Group::kPart] = parts[part];
        }
      }
    }
  }

 private:
  // The unit of the position a tile's step below `position`, whose own is
  // `unit`: where four rows of a matrix divide the distance, all units are
  // equally far apart, or their halves have changed places besides; where not,
  // it is found anew.
  static __device__ int UnitBelow(int unit, int octet, int position) {
    constexpr int kDistance = Spec::kStepH * Spec::kRowPitch;
    if constexpr (Group::kOctetsOfRow == 1) {
      return unit + kDistance;
    } else if constexpr (kDistance % 4 == 0) {
      return (unit + 2 * kDistance) ^ (kDistance / 4 % 2);
    } else {
      return Group::UnitOf(octet, position + kDistance);
    }
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_CARRY_CUH_
