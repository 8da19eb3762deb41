// SPDX-License-Identifier: Apache-2.0
// Stores accumulators of contiguous channels of one pixel in out: the default epilogue, and
// programs, whose tensors are accessed element by element, since channels of a depthwise
// convolution are matrices of a batch.
#pragma once

#include <device/abi/depthwise_design.hpp>
#include <device/abi/depthwise_params.hpp>
#include <device/copy/element_run.cuh>
#include <device/epilogue/operations.cuh>
#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// An element of out as an element of a batch of matrices. The next channels are the next matrices.
struct ChannelPlace {
  unsigned batch;
  unsigned row;
  unsigned column;
};

__device__ __forceinline__ abi::Int64 element_at(const abi::DepthwiseMatrix& matrix,
                                                 const ChannelPlace& place) {
  return static_cast<abi::Int64>(place.batch) * matrix.batch +
         static_cast<abi::Int64>(place.row) * matrix.row +
         static_cast<abi::Int64>(place.column) * matrix.column;
}

/// out = alpha * accumulator + beta * c.
template <const abi::DepthwiseDesign& design>
class LinearChannels {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;

  __device__ __forceinline__ LinearChannels(const abi::DepthwiseParams& params,
                                            const abi::DepthwiseParams&, char*)
      : params_(params) {}

  /// There is nothing to reduce.
  __device__ static void begin() {}
  __device__ static void reduce(unsigned, unsigned) {}

  template <int width, class Number>
  __device__ __forceinline__ void apply(const Number (&sums)[width], const ChannelPlace& place, int,
                                        Compute (&values)[width]) const {
    const Compute alpha = static_cast<Compute>(params_.alpha);
#pragma unroll
    for (int channel = 0; channel < width; ++channel)
      values[channel] = alpha * static_cast<Compute>(sums[channel]);
    if constexpr (design.has_c) {
      if (params_.beta != 0.0) add_c(values, place);
    }
  }

 private:
  template <int width>
  __device__ __forceinline__ void add_c(Compute (&values)[width], const ChannelPlace& place) const {
    constexpr int bytes = abi::bytes_of(design.c);
    const char* const first =
        static_cast<const char*>(params_.c) + element_at(params_.c_matrix, place) * bytes;
    const Compute beta = static_cast<Compute>(params_.beta);
    const auto loaded =
        width > 1 && params_.is_c_wide != 0
            ? load_run<design.c, 16, width>(first, width, 0)
            : load_run<design.c, 0, width>(first, width, params_.c_matrix.batch * bytes);
#pragma unroll
    for (int channel = 0; channel < width; ++channel)
      values[channel] += beta * decode<design.c, Compute>(loaded, channel);
  }

  const abi::DepthwiseParams& params_;
};

/// An emitted epilogue. Reductions give one value per channel: a thread keeps those of its channels
/// in shared memory, [reduction][channel][thread], while a block computes a share of the pixels;
/// each share gives a partial result for the channel.
template <const abi::DepthwiseDesign& design, class Epilogue>
class ProgramChannels {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  using Params = EpilogueParamsOf<Epilogue, Compute>;

  __device__ __forceinline__ ProgramChannels(const abi::DepthwiseParams& params,
                                             const Params& epilogue, char* shared)
      : params_(params), epilogue_(epilogue), kept_(reinterpret_cast<Compute*>(shared)) {}

  /// Called by all threads before the first pixel of a share.
  template <int output = 0>
  __device__ __forceinline__ void begin() const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) {
#pragma unroll 1
        for (int channel = 0; channel < design.channels; ++channel)
          *kept<output>(channel, static_cast<int>(threadIdx.x)) =
              ReducerOf<Epilogue, output, Compute>::nothing();
      }
      begin<output + 1>();
    }
  }

  /// `own`: the first of the thread's channels.
  template <int width, class Number>
  __device__ __forceinline__ void apply(const Number (&sums)[width], const ChannelPlace& place,
                                        int own, Compute (&values)[width]) const {
#pragma unroll
    for (int channel = 0; channel < width; ++channel) {
      const ProgramRows<Epilogue, Compute, 1, 1> program(
          epilogue_, ProgramBatch<Epilogue>(epilogue_, place.batch + channel), place.row,
          place.column, place.row + 1, place.column + 1);
      LoadedPatch<Epilogue, 1, 1> loaded;
      program.load(loaded, 0);
      const Compute of_channel[1][1] = {{static_cast<Compute>(sums[channel])}};
      Compute results[Epilogue::outputs + 1][1][1];
      program.apply(loaded, of_channel, 0, results);
      values[channel] = results[0][0][0];
      collect(results, own + channel);
    }
  }

  /// Called by all threads after the last pixel of a share, the `share`-th of its channels.
  template <int output = 0>
  __device__ __forceinline__ void reduce(unsigned first_channel, unsigned share) const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) {
        __syncthreads();  // waits for the values of all threads
#pragma unroll 1
        for (int own = static_cast<int>(threadIdx.x) / 32; own < design.channels;
             own += abi::depthwise_threads / 32)
          finish<output>(first_channel, share, own);
      }
      reduce<output + 1>(first_channel, share);
    }
  }

 private:
  /// The index of a reduction.
  GEMMERY_HOST_DEVICE
  static constexpr int number_of(int output) {
    int before = 0;
    for (int at = 0; at < output; ++at)
      if (Epilogue::output[at].reduction != abi::Reduction::none) ++before;
    return before;
  }
  template <int output>
  __device__ __forceinline__ Compute* kept(int channel, int thread) const {
    return kept_ + (number_of(output) * design.channels + channel) * abi::depthwise_threads +
           thread;
  }

  template <int output = 0>
  __device__ __forceinline__ void collect(const Compute (&results)[Epilogue::outputs + 1][1][1],
                                          int channel) const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) {
        using Reducer = ReducerOf<Epilogue, output, Compute>;
        Compute* const value = kept<output>(channel, static_cast<int>(threadIdx.x));
        *value = Reducer::both(*value, Reducer::of(results[output + 1][0][0]));
      }
      collect<output + 1>(results, channel);
    }
  }

  /// A warp combines the values of one channel of every lane of the tile.
  template <int output>
  __device__ __forceinline__ void finish(unsigned first_channel, unsigned share, int own) const {
    using Reducer = ReducerOf<Epilogue, output, Compute>;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Compute value = Reducer::nothing();
#pragma unroll 1
    for (int thread = lane; thread < abi::depthwise_threads; thread += 32)
      value = Reducer::both(value, *kept<output>(own, thread));
    value = Reducer::across_lanes(value, design.lanes, 32);
#pragma unroll 1
    for (int owner = 0; owner < design.lanes; ++owner) {
      const Compute of_channel = __shfl_sync(0xffffffffU, value, owner);
      const unsigned channel = first_channel + static_cast<unsigned>(owner * design.channels + own);
      if (channel < params_.channels) leave<output>(channel, share, of_channel, lane);
    }
  }

  template <int output>
  __device__ __forceinline__ void leave(unsigned channel, unsigned share, Compute value,
                                        int lane) const {
    using Region = MatrixRegion<1, 1>;
    const unsigned group = params_.group_channels.divide(channel);
    const unsigned column = channel - group * params_.group_channels.divisor;
    const RegionReductions<Epilogue, Compute, Region> reductions(
        epilogue_, Region{group, share, column, 1, params_.group_channels.divisor});
    if (lane == 0) *reductions.template part_of<output>(share, column, 0) = value;
    reductions.template arrive<output>(static_cast<unsigned>(lane));
  }

  const abi::DepthwiseParams& params_;
  const Params& epilogue_;
  Compute* const kept_;
};

/// Stores the elements of `width` channels from `place` on, the `own`-th of the thread's first.
template <const abi::DepthwiseDesign& design, int width, class Finish, class Number>
__device__ __forceinline__ void store_channels(const abi::DepthwiseParams& params,
                                               const Finish& finish, const Number (&sums)[width],
                                               const ChannelPlace& place, int own = 0) {
  constexpr int bytes = abi::bytes_of(design.out);
  typename Finish::Compute values[width];
  finish.template apply<width>(sums, place, own, values);
  char* const first = static_cast<char*>(params.out) + element_at(params.out_matrix, place) * bytes;
  store_run<design.out, 16, width>(first, values, width, 0);
}

}  // namespace gemmery::device
