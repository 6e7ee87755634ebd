// What blocks of stem_conv2d.cu have in shared memory: all weights, as
// fragments of matrices, and quads of the input for a tile.
#ifndef KILN_KERNEL_SOURCES_STEM_SHARED_CUH_
#define KILN_KERNEL_SOURCES_STEM_SHARED_CUH_

#include "stem_quads.cuh"
#include "vectors.cuh"

namespace kiln {

// Four words of each lane for a step and 16 channels (mma.cuh, ptx_halves.cuh).
// Of k = 4 * column + element of the quad, a lane has columns and elements that
// are side by side in the patch: of 16 bits a quad, of f32 half of one.
template <typename Spec>
class StemWeights {
 public:
  using Tile = StemTile<Spec>;
  using Quads = StemQuads<Spec>;
  using Type = typename Spec::InputType;

  // By all threads of the block.
  __device__ void Load(const typename Spec::Tensors& t) {
    constexpr int kCount = Tile::kSteps * Tile::kChannelTiles * 32;
#pragma unroll 2
    for (int i = threadIdx.x; i < kCount; i += Spec::kThreads) {
      const int lane = i % 32;
      const int channel = i / 32 % Tile::kChannelTiles * 16 + lane / 4;
      const int step = i / 32 / Tile::kChannelTiles;
      unsigned words[Quads::kParts][4];
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        LoadWord(t, channel + word % 2 * 8, step, lane % 4, word / 2,
                 [&](int part) -> unsigned& { return words[part][word]; });
      }
#pragma unroll
      for (int part = 0; part < Quads::kParts; ++part) {
        reinterpret_cast<uint4*>(fragments_[part])[i] = make_uint4(
            words[part][0], words[part][1], words[part][2], words[part][3]);
      }
    }
  }

  __device__ uint4 Fragment(int part, int step, int tile, int lane) const {
    return fragments_[part][step][tile][lane];
  }

 private:
  // The `second` of a lane's two words for `channel`, of all parts.
  template <typename WordOf>
  static __device__ void LoadWord(const typename Spec::Tensors& t, int channel,
                                  int step, int lane, int second,
                                  const WordOf& word_of) {
    if constexpr (Tile::kHasWords) {
      unsigned small;
      Quads::SetOne(At(t, channel, step, lane / 2, lane % 2 * 2 + second),
                    &word_of(0), &small);
      if constexpr (Quads::kParts == 2) word_of(1) = small;
    } else {
      word_of(0) = Quads::Pair(At(t, channel, step, lane, second * 2),
                               At(t, channel, step, lane, second * 2 + 1));
    }
  }

  // 0 where there is no such weight.
  static __device__ Type At(const typename Spec::Tensors& t, int channel,
                            int step, int column, int element) {
    constexpr int kChannels = Spec::Input::kC;
    const int x = step % Tile::kColumnSteps * Tile::kColumns + column;
    const int y = step / Tile::kColumnSteps * Tile::kRows + element / kChannels;
    if (channel >= Spec::Output::kC || x >= Spec::kKernelW ||
        element >= Tile::kElements) {
      return Type{};
    }
    const int filter = channel * kChannels + element % kChannels;
    return t.weight[(filter * Spec::kKernelH + y) * Spec::kKernelW + x];
  }

  uint4 fragments_[Quads::kParts][Tile::kSteps][Tile::kChannelTiles][32];
};

// A thread's elements of a tile's quads, on their way from memory, by accesses
// of kAtOnce columns.
template <typename Spec>
class StemElements {
 public:
  using Tile = StemTile<Spec>;
  using Type = typename Spec::InputType;
  using Index = typename Spec::Index;
  using Access = Vector<Type, Tile::kAtOnce>;
  static constexpr int kAcross = Tile::kPatchW / Tile::kAtOnce;
  static constexpr int kAccesses = Tile::kPatchH * kAcross;
  static constexpr int kOfThread =
      (kAccesses + Spec::kThreads - 1) / Spec::kThreads;

  // Calls visit(elements, row, column) of the quads' first for each access.
  template <typename Visit>
  __device__ void ForEach(const Visit& visit) {
#pragma unroll
    for (int k = 0; k < kOfThread; ++k) {
      const int i = k * Spec::kThreads + threadIdx.x;
      if (i < kAccesses) {
        visit(elements_[k], i / kAcross, i % kAcross * Tile::kAtOnce);
      }
    }
  }

  // Of image n, from (y, x) on, which may lie outside.
  __device__ void Load(const typename Spec::Tensors& t, bool is_aligned,
                       Index n, int y, int x) {
    ForEach([&](Access(&elements)[Tile::kElements], int row, int column) {
#pragma unroll
      for (int e = 0; e < Tile::kElements; ++e) {
        LoadOne(t, is_aligned, n, e % Spec::Input::kC,
                y + row + e / Spec::Input::kC * Spec::kDilationH, x + column,
                &elements[e]);
      }
    });
  }

 private:
  static __device__ void LoadOne(const typename Spec::Tensors& t,
                                 bool is_aligned, Index n, int c, int y, int x,
                                 Access* access) {
    using Input = typename Spec::Input;
    const bool is_inside = y >= 0 && y < Input::kH && x >= 0 && x < Input::kW;
    *access = {};
    if (!is_inside) return;
    const Index row = (n * Input::kC + c) * Input::kH + y;
    FetchCompactly(t.input, row * Input::kW + x, is_aligned, access);
  }

  Access elements_[kOfThread][Tile::kElements];
};

// The quads that a tile needs: row by row, and so many rows of the input in
// each that those of a filter lie kRows * kDilationH rows of quads apart.
template <typename Spec>
class StemPatch {
 public:
  using Tile = StemTile<Spec>;
  using Quads = StemQuads<Spec>;
  using Quad = typename Quads::Quad;
  using Type = typename Spec::InputType;
  using Access = typename StemElements<Spec>::Access;

  // By all threads of the block; returns whether all elements of this one are
  // finite.
  __device__ bool Put(StemElements<Spec>* loaded) {
    bool are_finite = true;
    loaded->ForEach(
        [&](Access(&elements)[Tile::kElements], int row, int column) {
          Quad quads[Tile::kAtOnce][Quads::kParts];
#pragma unroll
          for (int k = 0; k < Tile::kAtOnce; ++k) {
            Type four[4] = {};
#pragma unroll
            for (int e = 0; e < Tile::kElements; ++e) {
              four[e] = elements[e].elements[k];
            }
            are_finite = Quads::Set(four, quads[k]) && are_finite;
          }
#pragma unroll
          for (int part = 0; part < Quads::kParts; ++part) {
#pragma unroll
            for (int k = 0; k < Tile::kAtOnce; ++k) {
              quads_[part][row][Tile::PlaceOf(column + k)] = quads[k][part];
            }
          }
        });
    return are_finite;
  }

  // Two words: the lane's part of a quad.
  __device__ uint2 Words(int part, int quad, int half) const {
    const Quad* const quads = quads_[part][0] + quad;
    return reinterpret_cast<const uint2*>(quads)[half];
  }

 private:
  Quad quads_[Quads::kParts][Tile::kPatchH][Tile::kPitch];
};

template <typename Spec>
struct StemShared {
  StemWeights<Spec> weights;
  StemPatch<Spec> patch;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_STEM_SHARED_CUH_
