// SPDX-License-Identifier: Apache-2.0
// Reductions of all of out to one value by groups of warps, each of which keeps its part until its
// last region is done (device/abi/epilogue.hpp). Magnitudes in float32 are reduced more directly
// (magnitude_reduction.cuh):
//
//   every group                   writes one word: its part, and a bit that marks it as written
//   a warp of the last block      polls all words, combines the parts in their order, stores the
//                                 result, clears the words
//
// The alternative, a part, a fence and a counter, after which the last warp to arrive reads all
// parts, takes three successive round trips to the L2 cache. A word needs no fence, and the waiting
// warp has requested all words before the last one is written.
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>
#include <device/ptx/atomic.cuh>
#include <device/ptx/memory.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// One output of a launch. Its words start at 0 and are 0 again after the launch.
template <class Epilogue, int output>
class GroupReduction {
 public:
  using Params = EpilogueParamsOf<Epilogue, float>;
  using Reducer = ReducerOf<Epilogue, output, float>;

  __device__ __forceinline__ explicit GroupReduction(const Params& params)
      : words_(reinterpret_cast<Word*>(static_cast<char*>(params.workspace) +
                                       params.reduction[output].partials)),
        groups_(params.reduction[output].parts),
        result_(static_cast<char*>(params.output[output].data)) {}

  /// Called by one thread of every group, once, even if the group had no part of out.
  __device__ __forceinline__ void leave(unsigned group, float part) const {
    ptx::st_relaxed_gpu_b64(words_ + group, word_of(part));
  }

  /// Called by one warp of the launch's last block, after `leave` of its own group. The wait ends:
  /// no group waits for this warp, and all blocks get to run. There are at most as many blocks as
  /// multiprocessors. This block occupies one of them, so the others proceed whenever a second one
  /// is free. If there is no second one (a single multiprocessor, or other kernels that never end),
  /// this relies on blocks starting in the order of their numbers, which CUDA does not promise but
  /// all devices have done. The next launch takes no block's place: it starts when all blocks of
  /// this launch have started (ptx/grid_dependency.cuh).
  __device__ __forceinline__ void finish(unsigned lane) const {
    const float all = Reducer::across_lanes(wait_for_parts(lane), 1, 32);
    if (lane == 0) store(all);
    for (unsigned group = lane; group < groups_; group += 32)
      ptx::st_relaxed_gpu_b64(words_ + group, 0);
  }

 private:
  using Word = abi::UInt64;

  /// Words that a lane requests before it examines any: those of three groups of each of 170
  /// blocks.
  static constexpr int together = 16;

  __device__ static Word word_of(float part) { return Word{1} << 32 | __float_as_uint(part); }
  __device__ static bool is_there(Word word) { return word >> 32 != 0; }
  __device__ static float part_of(Word word) {
    return __uint_as_float(static_cast<unsigned>(word));
  }

  /// Combines the parts of groups lane, lane + 32 …
  __device__ __forceinline__ float wait_for_parts(unsigned lane) const {
    float value = Reducer::nothing();
#pragma unroll 1
    for (unsigned first = lane; first < groups_; first += 32 * together) {
      Word words[together];
      while (!read(words, first)) {
      }
#pragma unroll
      for (int at = 0; at < together; ++at) value = Reducer::both(value, part_of(words[at]));
    }
    return value;
  }

  /// True if all words have been written; words beyond the last group count as written, with no
  /// part.
  __device__ __forceinline__ bool read(Word (&words)[together], unsigned first) const {
#pragma unroll
    for (int at = 0; at < together; ++at) {
      const unsigned group = first + 32 * static_cast<unsigned>(at);
      words[at] = word_of(Reducer::nothing());
      if (group < groups_) words[at] = ptx::ld_relaxed_gpu_b64(words_ + group);
    }
    bool are_there = true;
#pragma unroll
    for (int at = 0; at < together; ++at) are_there = are_there && is_there(words[at]);
    return are_there;
  }

  __device__ __forceinline__ void store(float value) const {
    constexpr DType dtype = Epilogue::output[output].dtype;
    ptx::Registers<abi::bytes_of(dtype)> bits{};
    place<dtype>(bits, 0, value);
    ptx::st_global(result_, bits);
  }

  Word* words_;
  unsigned groups_;
  char* result_;
};

}  // namespace gemmery::device
