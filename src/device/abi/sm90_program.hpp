// SPDX-License-Identifier: Apache-2.0
// How an sm90 block loads the operands of an emitted epilogue: which of them are staged in shared
// memory, their places there, and the parameters that this needs.
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/abi/sm90_shared.hpp>

namespace gemmery::abi {

// Per consumer, in shared memory after everything else:
//
//   staging  for each input that TMA loads: `tma_input_depth` tiles as large as one of out's
//   vectors  for each input that is not a full matrix: the elements of the consumer's tile
//   parts    for each reduction to one value: the parts of the consumer's warps
//   full     a barrier for each warp and slot of the staging tiles, for all inputs
//
// Before all of these are the ones by which row vectors are multiplied, the row vectors that wgmmas
// add, and zeros, in this order.

inline constexpr int tma_input_depth = 2;  // one is read while the other is loaded
inline constexpr int most_tma_inputs = 2;  // more leave no room for stages; others use plain loads

GEMMERY_HOST_DEVICE
constexpr bool is_vector(const EpilogueTensor& tensor) {
  return !(tensor.varies_m && tensor.varies_n);
}

/// True if a reduction to one value is kept across a consumer's tiles and then stored as a 64-bit
/// word, which holds a float32. Not if blocks share tiles through the workspace: the consumer that
/// finishes a tile depends on timing, and so would the order of the additions.
GEMMERY_HOST_DEVICE
constexpr bool reduces_by_groups(const Sm90Design& design) {
  return !is_integer(design.accumulator) && design.split == SplitMode::none;
}

/// The properties of a design on which an emitted epilogue depends: the share of out that a
/// consumer stores. A value of its own, because discovery needs it often; made from stored_design.
struct StoredShare {
  bool adds_vector;
  DType operand;
  int consumers;
  int rows;     // of one consumer
  int columns;  // likewise
  int staging_columns;
  bool scatters_rows;
  bool has_row_pairs;

  GEMMERY_HOST_DEVICE
  constexpr StoredShare(const Sm90Design& stored)
      : adds_vector(stored.adds_vector),
        operand(stored.a),
        consumers(consumer_count(stored)),
        rows(blocks_per_consumer(stored) * sm90_block_rows),
        columns(columns_per_consumer(stored)),
        staging_columns(abi::staging_columns(stored)),
        scatters_rows(stored.scatters_rows),
        has_row_pairs(abi::has_row_pairs(stored)) {}

  /// True if TMA loads inputs: their staging tiles have the rows of out, in the order of a plain
  /// wgmma's.
  GEMMERY_HOST_DEVICE
  constexpr bool takes_tma_inputs() const { return !scatters_rows && !has_row_pairs; }
};

/// Bytes of a row of an input's staging tile, which has the columns of out's.
GEMMERY_HOST_DEVICE
constexpr int input_pitch_bytes(const EpilogueTensor& tensor, const StoredShare& share) {
  return share.staging_columns * bytes_of(tensor.dtype);
}

/// True if TMA can load an input: its rows are units of 16 bytes, and its staging tiles are no
/// wider than a swizzle.
GEMMERY_HOST_DEVICE
constexpr bool fits_tma(const EpilogueTensor& tensor, int staging_columns) {
  const int pitch = staging_columns * bytes_of(tensor.dtype);
  return tensor.varies_m && tensor.varies_n && tensor.vector_bytes == 16 &&
         (is_half(tensor.dtype) || tensor.dtype == DType::float32) &&
         (pitch == 32 || pitch == 64 || pitch == 128);
}

/// The inputs that TMA loads into staging tiles: the first few that it can.
struct TmaInputs {
  int count;
  int index[most_tma_inputs];

  /// The position of an input among them; -1 if it is not one of them.
  GEMMERY_HOST_DEVICE
  constexpr int place_of(int input) const {
    for (int place = 0; place < count; ++place)
      if (index[place] == input) return place;
    return -1;
  }
};

GEMMERY_HOST_DEVICE
constexpr TmaInputs tma_inputs(const EpilogueTensor* inputs, int count, int staging_columns,
                               bool takes_tma_inputs) {
  TmaInputs found{};
  if (!takes_tma_inputs) return found;
  for (int input = 0; input < count && found.count < most_tma_inputs; ++input)
    if (fits_tma(inputs[input], staging_columns)) found.index[found.count++] = input;
  return found;
}
GEMMERY_HOST_DEVICE
constexpr TmaInputs tma_inputs(const EpilogueTensor* inputs, int count, const StoredShare& share) {
  return tma_inputs(inputs, count, share.staging_columns, share.takes_tma_inputs());
}

/// True if little of a program's arithmetic waits for the special function unit or for memory, so
/// that a few independent chains at a time hide the latency. `slow_results`: results of the special
/// function unit per element.
GEMMERY_HOST_DEVICE
constexpr bool is_dense(int slow_results, int inputs, int full_inputs, int outputs) {
  // Two slow results with a full tensor spill up to 28 bytes (ptxas 13.0).
  return slow_results <= (full_inputs == 0 ? 2 : 1) && inputs <= 2 && outputs == 0;
}

/// The number of inputs that are full tensors.
GEMMERY_HOST_DEVICE
constexpr int count_full(const EpilogueTensor* inputs, int count) {
  int full = 0;
  for (int input = 0; input < count; ++input) full += is_vector(inputs[input]) ? 0 : 1;
  return full;
}

// --- a row vector that a wgmma adds -------------------------------------------------------------
//
// accumulators + vector = accumulators + ones * vector, a product over 16 k of which all but the
// first are zeros. Both operands are M- or N-major, in atoms of 64 columns and 8 k, rows of 128
// bytes. The first row of an atom, which no swizzle moves, is the vector as it lies in memory. The
// other 8 k are zeros, shared by all.

inline constexpr int addend_atom_bytes = 8 * sm90_swizzle_bytes;

/// Addend buffers of a consumer: one is multiplied while the next tile's is loaded.
inline constexpr int addends_per_consumer = 2;

GEMMERY_HOST_DEVICE
constexpr int addend_atoms(const StoredShare& share) { return (share.columns + 63) / 64; }

/// Bytes of all consumers' addends and of the ones and zeros that they share.
GEMMERY_HOST_DEVICE
constexpr int addend_bytes(const StoredShare& share) {
  const int vectors = share.consumers * addends_per_consumer;
  return (1 + (vectors + 1) * addend_atoms(share)) * addend_atom_bytes;
}

/// The input that a wgmma adds, -1 for none. It is `addend`, the one that the program adds to the
/// accumulators first (epilogue/addend.hpp), if its layout is what wgmma reads and no other input
/// varies along rows: up to 224 bytes spill with a full tensor, up to 24 with a vector (ptxas
/// 13.0).
GEMMERY_HOST_DEVICE
constexpr int vector_addend(const EpilogueTensor* inputs, int count, int addend,
                            const StoredShare& share) {
  if (!share.adds_vector || addend < 0) return -1;
  for (int input = 0; input < count; ++input)
    if (input != addend && inputs[input].varies_n) return -1;
  const EpilogueTensor& tensor = inputs[addend];
  const bool fits = tensor.dtype == share.operand && tensor.varies_n && !tensor.varies_m &&
                    tensor.vector_bytes == 16;
  return fits ? addend : -1;
}

/// Shared memory of one consumer; `addends` is that of all consumers.
struct ProgramBytes {
  int addends;
  int staging;
  int vectors;
  int parts;
  int barriers;

  GEMMERY_HOST_DEVICE
  constexpr int behind_staging() const { return vectors + parts + barriers; }
};

/// Elements of a vector that a consumer needs for its share of a tile.
GEMMERY_HOST_DEVICE
constexpr int vector_elements(const EpilogueTensor& tensor, const StoredShare& share) {
  if (tensor.varies_n) return share.columns;
  return tensor.varies_m ? share.rows : 1;
}

/// Rounded up, so that each begins at a unit of 16 bytes.
GEMMERY_HOST_DEVICE
constexpr int vector_room(const EpilogueTensor& tensor, const StoredShare& share) {
  return (vector_elements(tensor, share) * bytes_of(tensor.dtype) + 15) / 16 * 16;
}

/// Bytes of a vector's elements [begin, end) that a share needs. The bytes of all of them may
/// exceed an int.
GEMMERY_HOST_DEVICE
constexpr int vector_bytes_left(const EpilogueTensor& tensor, const StoredShare& share,
                                unsigned begin, unsigned end) {
  const auto most = static_cast<unsigned>(vector_elements(tensor, share));
  const unsigned left = begin < end ? end - begin : 0;
  return static_cast<int>(left < most ? left : most) * bytes_of(tensor.dtype);
}

/// The shared memory of a program with these inputs and outputs (besides D). `addend`: the input
/// that it adds to the accumulators first, as in vector_addend.
GEMMERY_HOST_DEVICE
constexpr ProgramBytes program_bytes(const EpilogueTensor* inputs, int input_count, int addend,
                                     const EpilogueTensor* outputs, int output_count,
                                     const StoredShare& share) {
  ProgramBytes bytes{};
  const TmaInputs by_tma = tma_inputs(inputs, input_count, share);
  for (int place = 0; place < by_tma.count; ++place)
    bytes.staging +=
        tma_input_depth * sm90_block_rows * input_pitch_bytes(inputs[by_tma.index[place]], share);
  if (by_tma.count > 0) bytes.barriers = tma_input_depth * warps_per_consumer * 8;
  const int added = vector_addend(inputs, input_count, addend, share);
  if (added >= 0) bytes.addends = addend_bytes(share);
  for (int input = 0; input < input_count; ++input)
    if (is_vector(inputs[input]) && input != added)
      bytes.vectors += vector_room(inputs[input], share);
  for (int output = 0; output < output_count; ++output)
    if (is_of_everything(outputs[output])) bytes.parts += warps_per_consumer * 4;
  return bytes;
}

/// The shared memory of all consumers of a block: the design's `program_bytes`.
GEMMERY_HOST_DEVICE
constexpr int all_program_bytes(const ProgramBytes& bytes, const StoredShare& share) {
  constexpr int unit = 1024;
  const int used = bytes.addends + share.consumers * (bytes.staging + bytes.behind_staging());
  return (used + unit - 1) / unit * unit;
}

/// The parameters of an sm90 kernel with an emitted epilogue; `Program` is a ProgramParams.
template <class Program, int maps>
struct Sm90ProgramParams {
  Program program;
  TensorMap input[maps];  // of the inputs that TMA brings
};
template <class Program>
struct Sm90ProgramParams<Program, 0> {
  Program program;
};

}  // namespace gemmery::abi
