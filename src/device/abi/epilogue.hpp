// SPDX-License-Identifier: Apache-2.0
// The interface of an emitted epilogue between host and device: its operands as template arguments,
// the schedule of its reductions, and its run-time parameters, byte for byte.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::abi {

enum class Reduction : unsigned char { none, sum, max, min, amax };

/// How a cast of a program narrows: the host's gemmery::epilogue::Rounding and Overflow.
enum class Rounding : unsigned char { nearest_even, toward_zero };
enum class Overflow : unsigned char { natural, saturate };

/// A tensor of the epilogue as the kernel sees it. m and n are rows and columns of the out that the
/// device computes, which is the transpose if the host transposed the problem.
struct EpilogueTensor {
  DType dtype;
  bool varies_l;
  bool varies_m;
  bool varies_n;
  /// The widest access along n, in bytes; 0 if elements along n are not adjacent.
  unsigned char vector_bytes;
  /// For an output: the reduction that combines elements.
  Reduction reduction;
  /// For an output with one value for each block of so many elements of m and n; 0: all of them.
  unsigned block_rows = 1;
  unsigned block_columns = 1;
  bool is_swizzled = false;  // in tiles of 128 lines and 4 blocks; its row stride counts tiles

  bool operator==(const EpilogueTensor&) const = default;
};

GEMMERY_HOST_DEVICE
constexpr bool is_of_blocks(const EpilogueTensor& tensor) {
  return tensor.block_rows != 1 || tensor.block_columns != 1;
}

/// A reduction of blocks whose value the program uses.
struct EpilogueBlock {
  Reduction reduction;
  unsigned rows;
  unsigned columns;
};

/// The memory of a tensor. Strides count elements and are 0 along directions that are broadcast.
struct EpiloguePlace {
  void* data;
  Int64 batch_stride;
  Int64 row_stride;
  Int64 column_stride;
};

// --- reductions ----------------------------------------------------------------------------------
//
// Out consists of regions, each computed by one group of warps. For every final value of a
// reduction, each region that it covers writes its part to the workspace, at a place that depends
// on the region only, never on time. Regions that share final values form a band. The last warp of
// a band to arrive at its counter adds up the parts in order.
//
// A reduction to a single value may be done by groups of warps instead. Each group keeps its part
// until all of its regions are done, and writes it into a 64-bit word: the part as float32, and a 1
// above it. A warp waits for all of these words and adds up the parts in order. The largest
// magnitude as float32 uses the first word in another way (epilogue/magnitude_reduction.cuh).

/// The regions of a launch.
struct RegionGrid {
  unsigned rows;  // regions per column of one matrix
  unsigned columns;
  unsigned batches;
  unsigned column_parts;  // parts that a region writes for each of its columns
  unsigned whole_parts;   // parts that it writes for a reduction to one value
  unsigned arrivals;      // warps of a region that arrive
  unsigned groups;        // of a reduction to one value; 0: by regions
  unsigned group_regions =
      0;  // region numbers that each group adds, in grouped products (group_regions.hpp)
};

/// One reduction of a launch.
struct ReductionSchedule {
  UInt64 counters;    // offset in the workspace; unused for groups
  UInt64 partials;    // the same; for groups their words, which are 0 before and after
  UInt64 finals;      // final values of all batches: the distance between parts
  unsigned parts;     // of each final value; unused for grouped products, as are arrivals
  unsigned arrivals;  // of a band; unused for groups
};

/// A reduction of all of out, all batches, to one value.
GEMMERY_HOST_DEVICE
constexpr bool is_of_everything(const EpilogueTensor& output) {
  return output.reduction != Reduction::none && !output.varies_l && !output.varies_m &&
         !output.varies_n;
}

/// True if it is done by groups.
GEMMERY_HOST_DEVICE
constexpr bool is_by_groups(const EpilogueTensor& output, const RegionGrid& grid) {
  return is_of_everything(output) && grid.groups > 0;
}

GEMMERY_HOST_DEVICE
constexpr unsigned parts_of_region(const EpilogueTensor& tensor, const RegionGrid& grid) {
  if (tensor.varies_m) return 1;
  return tensor.varies_n ? grid.column_parts : grid.whole_parts;
}

/// The number of regions in a band.
GEMMERY_HOST_DEVICE
constexpr unsigned regions_of_band(const EpilogueTensor& tensor, const RegionGrid& grid) {
  return (tensor.varies_m ? 1 : grid.rows) * (tensor.varies_n ? 1 : grid.columns) *
         (tensor.varies_l ? 1 : grid.batches);
}

GEMMERY_HOST_DEVICE
constexpr unsigned band_count(const EpilogueTensor& tensor, const RegionGrid& grid) {
  return (tensor.varies_m ? grid.rows : 1) * (tensor.varies_n ? grid.columns : 1) *
         (tensor.varies_l ? grid.batches : 1);
}

/// The index of a region within its band, and of its band among all.
GEMMERY_HOST_DEVICE
constexpr unsigned place_in_band(const EpilogueTensor& tensor, const RegionGrid& grid,
                                 unsigned batch, unsigned row, unsigned column) {
  const unsigned in_row = tensor.varies_n ? 0 : column;
  const unsigned columns = tensor.varies_n ? 1 : grid.columns;
  const unsigned in_matrix = (tensor.varies_m ? 0 : row) * columns + in_row;
  const unsigned per_matrix = (tensor.varies_m ? 1 : grid.rows) * columns;
  return (tensor.varies_l ? 0 : batch) * per_matrix + in_matrix;
}

GEMMERY_HOST_DEVICE
constexpr unsigned band_of(const EpilogueTensor& tensor, const RegionGrid& grid, unsigned batch,
                           unsigned row, unsigned column) {
  const unsigned columns = tensor.varies_n ? grid.columns : 1;
  const unsigned in_matrix = (tensor.varies_m ? row : 0) * columns + (tensor.varies_n ? column : 0);
  const unsigned per_matrix = (tensor.varies_m ? grid.rows : 1) * columns;
  return (tensor.varies_l ? batch : 0) * per_matrix + in_matrix;
}

// --- parameters ----------------------------------------------------------------------------------

/// The run-time parameters of an emitted epilogue with this many operands; numbers have its compute
/// type.
template <int inputs, int outputs, int numbers, class Compute>
struct EpilogueParams {
  void* workspace;  // for reductions
  RegionGrid regions;
  EpiloguePlace input[inputs > 0 ? inputs : 1];
  EpiloguePlace output[outputs > 0 ? outputs : 1];
  ReductionSchedule reduction[outputs > 0 ? outputs : 1];
  Compute number[numbers > 0 ? numbers : 1];
};

/// The parameters of a kernel with an emitted epilogue.
template <class Gemm, class Epilogue>
struct ProgramParams {
  Gemm gemm;
  Epilogue epilogue;
};

static_assert(sizeof(EpiloguePlace) == 32);
static_assert(sizeof(ReductionSchedule) == 32);
static_assert(sizeof(EpilogueParams<1, 1, 2, float>) == 8 + 32 + 3 * 32 + 8);

}  // namespace gemmery::abi
