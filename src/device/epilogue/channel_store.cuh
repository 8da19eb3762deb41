// SPDX-License-Identifier: Apache-2.0
// From accumulators of adjacent channels of one pixel to out: the default epilogue, and programs,
// whose tensors are found element by element, since channels of a depthwise convolution are
// matrices of a batch.
#pragma once

#include <device/abi/depthwise_design.hpp>
#include <device/abi/depthwise_params.hpp>
#include <device/copy/element_run.cuh>
#include <device/epilogue/operations.cuh>
#include <device/epilogue/program.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// An element of out, as that of a batch of matrices. The next channels are the next matrices.
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
template <abi::DepthwiseDesign design>
class LinearChannels {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;

  __device__ __forceinline__ explicit LinearChannels(const abi::DepthwiseParams& params)
      : params_(params) {}

  template <int width, class Number>
  __device__ __forceinline__ void apply(const Number (&sums)[width], const ChannelPlace& place,
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

/// An emitted epilogue without reductions.
template <abi::DepthwiseDesign design, class Epilogue>
class ProgramChannels {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  using Params = EpilogueParamsOf<Epilogue, Compute>;

  __device__ __forceinline__ explicit ProgramChannels(const Params& params) : params_(params) {}

  template <int width, class Number>
  __device__ __forceinline__ void apply(const Number (&sums)[width], const ChannelPlace& place,
                                        Compute (&values)[width]) const {
#pragma unroll
    for (int channel = 0; channel < width; ++channel) {
      const ProgramRows<Epilogue, Compute, 1, 1> program(
          params_, ProgramBatch<Epilogue>(params_, place.batch + channel), place.row, place.column,
          place.row + 1, place.column + 1);
      LoadedPatch<Epilogue, 1, 1> loaded;
      program.load(loaded, 0);
      const Compute own[1][1] = {{static_cast<Compute>(sums[channel])}};
      Compute results[Epilogue::outputs + 1][1][1];
      program.apply(loaded, own, 0, results);
      values[channel] = results[0][0][0];
    }
  }

 private:
  const Params& params_;
};

/// Stores the elements of `width` channels from `place` on.
template <abi::DepthwiseDesign design, int width, class Finish, class Number>
__device__ __forceinline__ void store_channels(const abi::DepthwiseParams& params,
                                               const Finish& finish, const Number (&sums)[width],
                                               const ChannelPlace& place) {
  constexpr int bytes = abi::bytes_of(design.out);
  typename Finish::Compute values[width];
  finish.template apply<width>(sums, place, values);
  char* const first = static_cast<char*>(params.out) + element_at(params.out_matrix, place) * bytes;
  store_run<design.out, 16, width>(first, values, width, 0);
}

}  // namespace gemmery::device
