// SPDX-License-Identifier: Apache-2.0
// Reductions of an epilogue across regions of out. Parts are written to the workspace and counted;
// the last warp of a band to arrive combines them in order (device/abi/epilogue.hpp). Bits do not
// depend on which warp that is. Counters start at 0 and are 0 again after the last arrival.
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/abi/group_regions.hpp>
#include <device/epilogue/math.cuh>
#include <device/epilogue/program.cuh>
#include <device/ptx/atomic.cuh>
#include <device/ptx/memory.cuh>
#include <device/tile/element.cuh>
#include <device/tile/indexed_element.cuh>

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
inline constexpr bool is_reduced = Epilogue::output[output].reduction != abi::Reduction::none;

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

/// Stores the final value of this row and column.
template <abi::EpilogueTensor tensor, class Compute>
__device__ __forceinline__ void store_reduced(const abi::EpiloguePlace& place, Compute value,
                                              unsigned batch, unsigned row, unsigned column) {
  abi::Int64 elements = 0;
  if constexpr (tensor.varies_l) elements += static_cast<abi::Int64>(batch) * place.batch_stride;
  if constexpr (tensor.varies_m) elements += static_cast<abi::Int64>(row) * place.row_stride;
  if constexpr (tensor.varies_n) elements += static_cast<abi::Int64>(column) * place.column_stride;
  ptx::Registers<abi::bytes_of(tensor.dtype)> bits{};
  device::place<tensor.dtype>(bits, 0, value);
  ptx::st_global(static_cast<char*>(place.data) + elements * abi::bytes_of(tensor.dtype), bits);
}

/// A region of out as one matrix of a batch, and its band of regions that share final values.
template <int region_rows, int region_columns>
struct MatrixRegion {
  static constexpr unsigned rows = region_rows;
  static constexpr unsigned columns = region_columns;

  unsigned batch;
  unsigned row;  // of its first element
  unsigned column;
  unsigned m;  // rows and columns of out
  unsigned n;

  /// The index of the region's counter.
  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ unsigned band(const abi::RegionGrid& grid) const {
    return abi::band_of(tensor, grid, batch, row / rows, column / columns);
  }
  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ unsigned place_in_band(const abi::RegionGrid& grid) const {
    return abi::place_in_band(tensor, grid, batch, row / rows, column / columns);
  }
  // References to parameters: with copies ptxas 13.0 unrolled the loop over parts differently, and
  // kernels without groups had more code.
  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ const unsigned& arrivals(
      const abi::RegionGrid&, const abi::ReductionSchedule& schedule) const {
    return schedule.arrivals;
  }
  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ const unsigned& parts(const abi::RegionGrid&,
                                                   const abi::ReductionSchedule& schedule) const {
    return schedule.parts;
  }
  /// The place of the first part of the final value of an element, in the workspace.
  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ abi::UInt64 first_part(const abi::RegionGrid&, unsigned own_row,
                                                    unsigned own_column) const {
    abi::UInt64 value = tensor.varies_l ? batch : 0;
    if constexpr (tensor.varies_m) value = value * m + own_row;
    if constexpr (tensor.varies_n) value = value * n + own_column;
    return value;
  }

  __device__ unsigned batch_of_out() const { return batch; }
  __device__ unsigned row_end() const { return m; }
  __device__ unsigned column_end() const { return n; }
};

/// A region of a group (abi/group_regions.hpp).
template <int region_rows, int region_columns>
struct GroupRegion {
  static constexpr unsigned rows = region_rows;
  static constexpr unsigned columns = region_columns;

  abi::RegionGroup of;
  unsigned row;
  unsigned column;

  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ unsigned band(const abi::RegionGrid& grid) const {
    const bool is_of_group = is_of_k() || abi::reduces_ragged(tensor, of.ragged);
    unsigned index = is_of_group ? of.group : 0;
    if constexpr (tensor.varies_m) index = index * grid.rows + first_row(grid) + row_in_group();
    if constexpr (tensor.varies_n)
      index = index * grid.columns + first_column(grid) + column_in_group();
    return index;
  }
  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ unsigned place_in_band(const abi::RegionGrid& grid) const {
    unsigned place = tensor.varies_m ? 0 : row_in_group();
    if constexpr (!tensor.varies_n) place = place * columns_of_group(grid) + column_in_group();
    return place;
  }
  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ unsigned arrivals(const abi::RegionGrid& grid,
                                               const abi::ReductionSchedule&) const {
    return regions_of_band<tensor>(grid) * grid.arrivals;
  }
  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ unsigned parts(const abi::RegionGrid& grid,
                                            const abi::ReductionSchedule&) const {
    return regions_of_band<tensor>(grid) * abi::parts_of_region(tensor, grid);
  }
  template <abi::EpilogueTensor tensor>
  __device__ __forceinline__ abi::UInt64 first_part(const abi::RegionGrid& grid, unsigned own_row,
                                                    unsigned own_column) const {
    const bool is_of_numbers = abi::reduces_ragged(tensor, of.ragged);
    abi::UInt64 value = 0;
    if (is_of_numbers) {
      const unsigned across =
          is_of_m() ? (tensor.varies_n ? 1 : grid.columns) : (tensor.varies_m ? 1 : grid.rows);
      value = abi::UInt64{first_row(grid) + first_column(grid)} * across *
              abi::parts_of_region(tensor, grid);
    } else if (tensor.varies_l) {
      value = of.group;
    }
    if constexpr (tensor.varies_m) value = value * of.m + own_row;
    if constexpr (tensor.varies_n) value = value * of.n + own_column;
    return value;
  }

  __device__ unsigned batch_of_out() const { return of.group; }
  __device__ unsigned row_end() const { return is_of_m() ? of.end : of.m; }
  __device__ unsigned column_end() const { return is_of_n() ? of.end : of.n; }

 private:
  __device__ bool is_of_m() const { return of.ragged == abi::RaggedExtent::m; }
  __device__ bool is_of_n() const { return of.ragged == abi::RaggedExtent::n; }
  __device__ bool is_of_k() const { return of.ragged == abi::RaggedExtent::k; }

  /// The numbers of the group's first regions.
  __device__ unsigned first_row(const abi::RegionGrid& grid) const {
    return is_of_m() ? of.begin / rows + of.group * grid.group_regions : 0;
  }
  __device__ unsigned first_column(const abi::RegionGrid& grid) const {
    return is_of_n() ? of.begin / columns + of.group * grid.group_regions : 0;
  }
  __device__ unsigned row_in_group() const { return (row - (is_of_m() ? of.begin : 0)) / rows; }
  __device__ unsigned column_in_group() const {
    return (column - (is_of_n() ? of.begin : 0)) / columns;
  }
  __device__ unsigned rows_of_group(const abi::RegionGrid& grid) const {
    return is_of_m() ? abi::regions_along(of.end - of.begin, rows) : grid.rows;
  }
  __device__ unsigned columns_of_group(const abi::RegionGrid& grid) const {
    return is_of_n() ? abi::regions_along(of.end - of.begin, columns) : grid.columns;
  }
  template <abi::EpilogueTensor tensor>
  __device__ unsigned regions_of_band(const abi::RegionGrid& grid) const {
    return (tensor.varies_m ? 1 : rows_of_group(grid)) *
           (tensor.varies_n ? 1 : columns_of_group(grid));
  }
};

/// The same if rows of out are found by indices: it has the row of out for each of the region's
/// rows, no_element for a row that is not stored and has no part.
template <int region_rows, int region_columns>
struct IndexedGroupRegion : GroupRegion<region_rows, region_columns> {
  const int* rows_of_out;

  __device__ int row_of_out(unsigned own_row) const { return rows_of_out[own_row - this->row]; }
};

/// The same with the indices in memory, of rows or of columns.
template <bool is_of_rows, int region_rows, int region_columns>
struct ScatteredRegion : GroupRegion<region_rows, region_columns> {
  const abi::IndexParams* scatter;

  __device__ int row_of_out(unsigned own_row) const { return find_element(*scatter, own_row); }
};
template <int region_rows, int region_columns>
struct ScatteredRegion<false, region_rows, region_columns>
    : GroupRegion<region_rows, region_columns> {
  const abi::IndexParams* scatter;

  __device__ int column_of_out(unsigned own_column) const {
    return find_element(*scatter, own_column);
  }
};

/// The region type of a kernel: without groups, with groups, or with groups and indices.
template <bool has_groups, int region_rows, int region_columns, bool has_indices = false>
struct RegionChoice {
  using Type = MatrixRegion<region_rows, region_columns>;
};
template <int region_rows, int region_columns>
struct RegionChoice<true, region_rows, region_columns, false> {
  using Type = GroupRegion<region_rows, region_columns>;
};
template <int region_rows, int region_columns>
struct RegionChoice<true, region_rows, region_columns, true> {
  using Type = IndexedGroupRegion<region_rows, region_columns>;
};
template <bool has_groups, int region_rows, int region_columns, bool has_indices = false>
using RegionOf = typename RegionChoice<has_groups, region_rows, region_columns, has_indices>::Type;

/// The reductions of a region of out, as seen by one of its warps. `Region`: a MatrixRegion, a
/// GroupRegion, an IndexedGroupRegion or a ScatteredRegion.
template <class Epilogue, class Compute, class Region>
class RegionReductions {
 public:
  using Params = EpilogueParamsOf<Epilogue, Compute>;

  __device__ __forceinline__ RegionReductions(const Params& params, const Region& region)
      : params_(params), region_(region) {}

  /// The place of the region's part of the final value that out[row][column] contributes to; `part`
  /// counts the region's own parts.
  template <int output>
  __device__ __forceinline__ Compute* part_of(unsigned row, unsigned column, unsigned part) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    const unsigned first = region_.template place_in_band<tensor>(params_.regions) *
                           abi::parts_of_region(tensor, params_.regions);
    return partials<output>() + (first + part) * params_.reduction[output].finals +
           final_of<output>(row, column);
  }

  /// Called by all lanes of a warp when all parts for which it arrives are written.
  template <int output>
  __device__ __forceinline__ void arrive(unsigned lane) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    __syncwarp();  // waits until all lanes have written their parts
    const unsigned& arrivals =
        region_.template arrivals<tensor>(params_.regions, params_.reduction[output]);
    unsigned before = 0;
    if (lane == 0) {
      unsigned* const counters = reinterpret_cast<unsigned*>(static_cast<char*>(params_.workspace) +
                                                             params_.reduction[output].counters);
      before = ptx::atom_inc_acq_rel_gpu(counters + region_.template band<tensor>(params_.regions),
                                         arrivals - 1);
    }
    before = __shfl_sync(0xffffffffU, before, 0);
    __syncwarp();  // what lane 0 has acquired, all may read
    if (before + 1 == arrivals) finish<output>(lane);
  }

 private:
  template <int output>
  __device__ __forceinline__ Compute* partials() const {
    return reinterpret_cast<Compute*>(static_cast<char*>(params_.workspace) +
                                      params_.reduction[output].partials);
  }

  template <int output>
  __device__ __forceinline__ abi::UInt64 final_of(unsigned row, unsigned column) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    return region_.template first_part<tensor>(params_.regions, row, column);
  }

  /// Computes the final values of the region's band.
  template <int output>
  __device__ __forceinline__ void finish(unsigned lane) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    constexpr bool is_single = Region::rows * Region::columns == 1;
    if constexpr (is_single || (!tensor.varies_m && !tensor.varies_n)) {
      const unsigned row = is_single ? region_.row : 0;
      const unsigned column = is_single ? region_.column : 0;
      const Compute value =
          sum_parts<output>(partials<output>() + final_of<output>(row, column), lane, 32);
      const Compute all = ReducerOf<Epilogue, output, Compute>::across_lanes(value, 1, 32);
      if (lane == 0) store<output>(all, row, column);
    } else {
      const unsigned rows =
          tensor.varies_m ? min(region_.row_end() - region_.row, Region::rows) : 1;
      const unsigned columns =
          tensor.varies_n ? min(region_.column_end() - region_.column, Region::columns) : 1;
#pragma unroll 1
      for (unsigned index = lane; index < rows * columns; index += 32) {
        const unsigned row = region_.row + index / columns;
        const unsigned column = region_.column + index % columns;
        unsigned row_of_out = row;
        unsigned column_of_out = column;
        if constexpr (tensor.varies_m && requires { region_.row_of_out(row); }) {
          if (region_.row_of_out(row) == no_element) continue;
          row_of_out = static_cast<unsigned>(region_.row_of_out(row));
        }
        if constexpr (tensor.varies_n && requires { region_.column_of_out(column); }) {
          if (region_.column_of_out(column) == no_element) continue;
          column_of_out = static_cast<unsigned>(region_.column_of_out(column));
        }
        store<output>(sum_parts<output>(partials<output>() + final_of<output>(row, column), 0, 1),
                      row_of_out, column_of_out);
      }
    }
  }

  /// Combines parts first, first + step …
  template <int output>
  __device__ __forceinline__ Compute sum_parts(const Compute* parts, unsigned first,
                                               unsigned step) const {
    using Reducer = ReducerOf<Epilogue, output, Compute>;
    const abi::ReductionSchedule& schedule = params_.reduction[output];
    const unsigned& count =
        region_.template parts<Epilogue::output[output]>(params_.regions, schedule);
    Compute value = Reducer::nothing();
#pragma unroll 8
    for (unsigned part = first; part < count; part += step)
      value = Reducer::both(value, parts[part * schedule.finals]);
    return value;
  }

  template <int output>
  __device__ __forceinline__ void store(Compute value, unsigned row, unsigned column) const {
    store_reduced<Epilogue::output[output]>(params_.output[output], value, region_.batch_of_out(),
                                            row, column);
  }

  const Params& params_;
  const Region region_;
};

}  // namespace gemmery::device
