// SPDX-License-Identifier: Apache-2.0
// Reductions of an epilogue across regions of out: parts in the workspace, an arrival counter, and
// the last warp of a band, which adds parts up in order (device/abi/epilogue.hpp). Bits do not
// depend on which warp that is. Counters start at 0 and are 0 again after the last arrival.
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/epilogue/math.cuh>
#include <device/epilogue/program.cuh>
#include <device/ptx/atomic.cuh>
#include <device/ptx/memory.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// The combination of values. NaN wins everywhere.
template <abi::Reduction reduction, class Compute>
struct Reducer {
  __device__ __forceinline__ static Compute nothing() {
    if constexpr (reduction == abi::Reduction::max) return -infinity();
    if constexpr (reduction == abi::Reduction::min) return infinity();
    return Compute{0};
  }
  /// The contribution of an element.
  __device__ __forceinline__ static Compute of(Compute value) {
    return reduction == abi::Reduction::amax ? math::abs(value) : value;
  }
  __device__ __forceinline__ static Compute both(Compute x, Compute y) {
    if constexpr (reduction == abi::Reduction::sum) return x + y;
    if constexpr (reduction == abi::Reduction::min) return math::min(x, y);
    return math::max(x, y);
  }
  /// The largest of three magnitudes in one instruction: as integers they have the same order, with
  /// NaN above all.
  __device__ __forceinline__ static float of_three(float x, float y, float z) {
    static_assert(reduction == abi::Reduction::amax);
    return __uint_as_float(max(max(__float_as_uint(x), __float_as_uint(y)), __float_as_uint(z)));
  }
  /// Over lanes whose numbers differ in the bits from `first` to `end` (powers of two); all of them
  /// get the result.
  __device__ __forceinline__ static Compute across_lanes(Compute value, int first, int end) {
#pragma unroll
    for (int distance = first; distance < end; distance *= 2)
      value = both(value, __shfl_xor_sync(0xffffffffU, value, distance));
    return value;
  }

 private:
  __device__ static Compute infinity() {
    return static_cast<Compute>(__uint_as_float(0x7f800000U));
  }
};

template <class Epilogue, int output, class Compute>
using ReducerOf = Reducer<Epilogue::output[output].reduction, Compute>;

template <class Epilogue, int output>
constexpr bool is_reduced = Epilogue::output[output].reduction != abi::Reduction::none;

/// True if any further output of a program satisfies `Is`.
template <class Epilogue, class Is>
GEMMERY_HOST_DEVICE
constexpr bool has_any_output(Is is) {
  for (int output = 0; output < Epilogue::outputs; ++output)
    if (is(Epilogue::output[output])) return true;
  return false;
}

template <class Epilogue>
GEMMERY_HOST_DEVICE
constexpr bool has_reductions() {
  return has_any_output<Epilogue>(
      [](const abi::EpilogueTensor& output) { return output.reduction != abi::Reduction::none; });
}

/// The reductions of a region of `region_rows` by `region_columns` of out, as seen by one of its
/// warps.
template <class Epilogue, class Compute, int region_rows, int region_columns>
class RegionReductions {
 public:
  using Params = EpilogueParamsOf<Epilogue, Compute>;

  /// `row` and `column`: of the region's first element.
  __device__ __forceinline__ RegionReductions(const Params& params, unsigned batch, unsigned row,
                                              unsigned column, unsigned m, unsigned n)
      : params_(params), batch_(batch), row_(row), column_(column), m_(m), n_(n) {}

  /// The place of the region's part of the final value that out[row][column] contributes to; `part`
  /// counts the region's own parts.
  template <int output>
  __device__ __forceinline__ Compute* part_of(unsigned row, unsigned column, unsigned part) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    const unsigned first = abi::place_in_band(tensor, params_.regions, batch_, row_ / region_rows,
                                              column_ / region_columns) *
                           abi::parts_of_region(tensor, params_.regions);
    return partials<output>() + (first + part) * params_.reduction[output].finals +
           final_of<output>(row, column);
  }

  /// Called by all lanes of a warp once its parts, and those that it answers for, are written.
  template <int output>
  __device__ __forceinline__ void arrive(unsigned lane) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    __syncwarp();  // waits until all lanes have written their parts
    unsigned before = 0;
    if (lane == 0) {
      unsigned* const counters = reinterpret_cast<unsigned*>(static_cast<char*>(params_.workspace) +
                                                             params_.reduction[output].counters);
      before = ptx::atom_inc_acq_rel_gpu(
          counters + abi::band_of(tensor, params_.regions, batch_, row_ / region_rows,
                                  column_ / region_columns),
          params_.reduction[output].arrivals - 1);
    }
    before = __shfl_sync(0xffffffffU, before, 0);
    __syncwarp();  // what lane 0 has acquired, all may read
    if (before + 1 == params_.reduction[output].arrivals) finish<output>(lane);
  }

 private:
  template <int output>
  __device__ __forceinline__ Compute* partials() const {
    return reinterpret_cast<Compute*>(static_cast<char*>(params_.workspace) +
                                      params_.reduction[output].partials);
  }

  /// The index of a final value.
  template <int output>
  __device__ __forceinline__ abi::UInt64 final_of(unsigned row, unsigned column) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    abi::UInt64 value = tensor.varies_l ? batch_ : 0;
    if constexpr (tensor.varies_m) value = value * m_ + row;
    if constexpr (tensor.varies_n) value = value * n_ + column;
    return value;
  }

  /// Computes the final values of the region's band.
  template <int output>
  __device__ __forceinline__ void finish(unsigned lane) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    if constexpr (!tensor.varies_m && !tensor.varies_n) {
      const Compute value =
          sum_parts<output>(partials<output>() + final_of<output>(0, 0), lane, 32);
      const Compute all = ReducerOf<Epilogue, output, Compute>::across_lanes(value, 1, 32);
      if (lane == 0) store<output>(all, 0, 0);
    } else {
      const unsigned rows = tensor.varies_m ? min(m_ - row_, unsigned{region_rows}) : 1;
      const unsigned columns = tensor.varies_n ? min(n_ - column_, unsigned{region_columns}) : 1;
#pragma unroll 1
      for (unsigned index = lane; index < rows * columns; index += 32) {
        const unsigned row = row_ + index / columns;
        const unsigned column = column_ + index % columns;
        store<output>(sum_parts<output>(partials<output>() + final_of<output>(row, column), 0, 1),
                      row, column);
      }
    }
  }

  /// Combines parts first, first + step …
  template <int output>
  __device__ __forceinline__ Compute sum_parts(const Compute* parts, unsigned first,
                                               unsigned step) const {
    using Reducer = ReducerOf<Epilogue, output, Compute>;
    const abi::ReductionSchedule& schedule = params_.reduction[output];
    Compute value = Reducer::nothing();
#pragma unroll 8
    for (unsigned part = first; part < schedule.parts; part += step)
      value = Reducer::both(value, parts[part * schedule.finals]);
    return value;
  }

  template <int output>
  __device__ __forceinline__ void store(Compute value, unsigned row, unsigned column) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    const abi::EpiloguePlace& place = params_.output[output];
    abi::Int64 elements = 0;
    if constexpr (tensor.varies_l) elements += static_cast<abi::Int64>(batch_) * place.batch_stride;
    if constexpr (tensor.varies_m) elements += static_cast<abi::Int64>(row) * place.row_stride;
    if constexpr (tensor.varies_n)
      elements += static_cast<abi::Int64>(column) * place.column_stride;
    ptx::Registers<abi::bytes_of(tensor.dtype)> bits{};
    device::place<tensor.dtype>(bits, 0, value);
    ptx::st_global(static_cast<char*>(place.data) + elements * abi::bytes_of(tensor.dtype), bits);
  }

  const Params& params_;
  unsigned batch_;
  unsigned row_;
  unsigned column_;
  unsigned m_;
  unsigned n_;
};

}  // namespace gemmery::device
