// SPDX-License-Identifier: Apache-2.0
// The design of a skinny kernel and the values that follow from it: the shape of a tile, the loads
// of its threads, shared memory, and which designs are legal.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/major.hpp>
#include <device/abi/power_of_two.hpp>
#include <device/abi/simt_design.hpp>

namespace gemmery::abi {

/// out has few rows. B, the large operand, is streamed once from memory to registers; A is kept in
/// shared memory. The host transposes a problem with few columns into out^T = B^T A^T.
///
/// `lanes` threads lie along the adjacent index of B, and each loads vectors of it. If that index
/// is k, the lanes are a warp, which has `loads` columns. If it is the columns, a thread loads
/// `loads` consecutive k of its vector of columns, and the groups of lanes split k.
struct SkinnyDesign {
  DType a;
  DType b;
  DType c;
  DType out;
  DType accumulator;
  Major b_major;
  int a_vector_bytes;    // of the widest access along k; 0 if k is not adjacent
  int b_vector_bytes;    // the same along the major index
  int c_vector_bytes;    // along columns; 0 if they are not adjacent
  int out_vector_bytes;  // the same
  int rows;              // of out, at most: 1, 2, 4 or 8
  int threads;
  int loads;  // of a thread, in one slot
  int lanes;  // 32 along k
  int slots;  // in registers; the loads of all but one are in flight
  bool splits_k;
  bool has_c;

  bool operator==(const SkinnyDesign&) const = default;
};

GEMMERY_HOST_DEVICE
constexpr int group_count(const SkinnyDesign& design) { return design.threads / design.lanes; }

/// Bytes of one load of B. If no index is adjacent, the loads run along k.
GEMMERY_HOST_DEVICE
constexpr int load_bytes(const SkinnyDesign& design) {
  return design.b_vector_bytes > 0 ? design.b_vector_bytes : bytes_of(design.b);
}
GEMMERY_HOST_DEVICE
constexpr int load_elements(const SkinnyDesign& design) {
  return load_bytes(design) / bytes_of(design.b);
}

/// Columns of a tile.
GEMMERY_HOST_DEVICE
constexpr int tile_columns(const SkinnyDesign& design) {
  return design.b_major == Major::k ? group_count(design) * design.loads
                                    : design.lanes * load_elements(design);
}

/// Values of k in one word of shared memory, and in one multiply-add: four 8-bit integers feed one
/// dp4a, fewer if a load has fewer of one column.
GEMMERY_HOST_DEVICE
constexpr int k_per_word(const SkinnyDesign& design) {
  if (design.accumulator != DType::int32) return 1;
  const int adjacent = design.b_major == Major::k ? load_elements(design) : design.loads;
  return adjacent < 4 ? adjacent : 4;
}

/// Bytes of such a word; accumulators have the same size.
GEMMERY_HOST_DEVICE
constexpr int word_bytes(const SkinnyDesign& design) {
  return design.accumulator == DType::float64 ? 8 : 4;
}

/// Values of k that a block multiplies with the loads of one slot.
GEMMERY_HOST_DEVICE
constexpr int step_k(const SkinnyDesign& design) {
  return design.b_major == Major::k ? design.lanes * load_elements(design)
                                    : group_count(design) * design.loads;
}

/// The granularity of split k: the k of one pass through all slots.
GEMMERY_HOST_DEVICE
constexpr int split_unit(const SkinnyDesign& design) { return step_k(design) * design.slots; }

/// Accumulators of a thread.
GEMMERY_HOST_DEVICE
constexpr int accumulators_per_thread(const SkinnyDesign& design) {
  return design.rows * (design.b_major == Major::k ? design.loads : load_elements(design));
}

// --- A in shared memory --------------------------------------------------------------------------

/// Words of A that a thread reads in one access, of 16 bytes at most, for one column of B. A vector
/// of B along k may need several such runs; they lie in planes, so that lanes read adjacent runs.
GEMMERY_HOST_DEVICE
constexpr int run_words(const SkinnyDesign& design) {
  if (design.b_major == Major::extent) return 1;
  const int words = load_elements(design) / k_per_word(design);
  const int widest = 16 / word_bytes(design);
  return words < widest ? words : widest;
}

GEMMERY_HOST_DEVICE
constexpr int runs_of_load(const SkinnyDesign& design) {
  return design.b_major == Major::k ? load_elements(design) / k_per_word(design) / run_words(design)
                                    : 1;
}

/// Words of a row that a thread copies to shared memory at once: a run of floats if one access
/// loads it.
GEMMERY_HOST_DEVICE
constexpr int panel_unit_words(const SkinnyDesign& design) {
  const bool has_runs = design.b_major == Major::k && k_per_word(design) == 1 &&
                        run_words(design) * bytes_of(design.a) <= design.a_vector_bytes;
  return has_runs ? run_words(design) : 1;
}

/// Units of a thread that are loaded to registers while the previous panel is multiplied.
inline constexpr int panel_units_ahead = 4;

/// Values of k of A that are in shared memory at a time: some words of each thread, a multiple of
/// the split unit.
GEMMERY_HOST_DEVICE
constexpr int panel_k(const SkinnyDesign& design) {
  const int words = panel_units_ahead * panel_unit_words(design) * design.threads / design.rows;
  const int split_units = words * k_per_word(design) / split_unit(design);
  return split_unit(design) * (split_units > 1 ? split_units : 1);
}
GEMMERY_HOST_DEVICE
constexpr int panel_words(const SkinnyDesign& design) {
  return panel_k(design) / k_per_word(design);
}

/// Units of a panel that a thread copies, and how many of them are loaded to registers ahead of
/// time; the thread waits for the others one by one.
GEMMERY_HOST_DEVICE
constexpr int panel_units(const SkinnyDesign& design) {
  const int lines = design.b_major == Major::k ? 1 : design.rows;
  const int units = panel_words(design) / panel_unit_words(design) * design.rows / lines;
  return (units + design.threads - 1) / design.threads;
}
GEMMERY_HOST_DEVICE
constexpr int units_ahead(const SkinnyDesign& design) {
  const int units = panel_units(design);
  return units < panel_units_ahead ? units : panel_units_ahead;
}

/// Position in the panel of the word of a row that begins at k (a multiple of k_per_word).
GEMMERY_HOST_DEVICE
constexpr int panel_place(const SkinnyDesign& design, int row, int k) {
  const int word = k / k_per_word(design);
  if (design.b_major == Major::extent) return word * design.rows + row;
  const int words_of_vector = load_elements(design) / k_per_word(design);
  const int vector = word / words_of_vector;
  const int in_vector = word % words_of_vector;
  const int run = run_words(design);
  const int vectors = panel_words(design) / words_of_vector;
  return row * panel_words(design) + (in_vector / run * vectors + vector) * run + in_vector % run;
}

// --- the end of a tile ---------------------------------------------------------------------------

/// Partial sums of each accumulator that are added up through shared memory.
GEMMERY_HOST_DEVICE
constexpr int parts_of_tile(const SkinnyDesign& design) {
  return design.b_major == Major::k ? 1 : group_count(design);
}
GEMMERY_HOST_DEVICE
constexpr int parts_bytes(const SkinnyDesign& design) {
  return parts_of_tile(design) * design.rows * tile_columns(design) * word_bytes(design);
}

GEMMERY_HOST_DEVICE
constexpr int elements_per_finisher(const SkinnyDesign& design) {
  const int elements = design.rows * tile_columns(design);
  return elements > design.threads ? elements / design.threads : 1;
}

/// The tile in the form of a simt design, whose epilogue finishes it: each of the first threads has
/// some rows by some columns. Fields of the mainloop are not used.
GEMMERY_HOST_DEVICE
constexpr SimtDesign finished_tile(const SkinnyDesign& design) {
  const int elements = elements_per_finisher(design);
  const int widest = 16 / word_bytes(design);
  const int columns = elements < widest ? elements : widest;
  const auto contiguity = [](int vector_bytes) {
    return vector_bytes > 0 ? Contiguity::row_major : Contiguity::none;
  };
  return {.a = design.a,
          .b = design.b,
          .c = design.c,
          .out = design.out,
          .accumulator = design.accumulator,
          .a_contiguity = Contiguity::none,
          .b_contiguity = Contiguity::none,
          .c_contiguity = contiguity(design.c_vector_bytes),
          .out_contiguity = contiguity(design.out_vector_bytes),
          .a_vector_bytes = 0,
          .b_vector_bytes = 0,
          .c_vector_bytes = design.c_vector_bytes > 0 ? design.c_vector_bytes : bytes_of(design.c),
          .out_vector_bytes =
              design.out_vector_bytes > 0 ? design.out_vector_bytes : bytes_of(design.out),
          .tile_m = design.rows,
          .tile_n = tile_columns(design),
          .tile_k = 0,
          .thread_m = elements / columns,
          .thread_n = columns,
          .k_slices = 1,
          .stages = 0,
          .has_c = design.has_c};
}
GEMMERY_HOST_DEVICE
constexpr int finisher_count(const SkinnyDesign& design) {
  return design.rows * tile_columns(design) / elements_per_finisher(design);
}

/// Shared memory for the reductions of an emitted epilogue.
GEMMERY_HOST_DEVICE
constexpr int reduction_bytes(const SkinnyDesign& design) {
  const int compute_bytes = design.accumulator == DType::int32 ? 8 : word_bytes(design);
  return design.rows * tile_columns(design) * compute_bytes;
}

GEMMERY_HOST_DEVICE
constexpr int shared_bytes(const SkinnyDesign& design) {
  int most = panel_words(design) * design.rows * word_bytes(design);
  for (const int bytes : {parts_bytes(design), reduction_bytes(design)})
    if (bytes > most) most = bytes;
  return most;
}

/// Bytes of B that a block has in flight.
GEMMERY_HOST_DEVICE
constexpr int bytes_under_way(const SkinnyDesign& design) {
  return design.threads * design.loads * (design.slots - 1) * load_bytes(design);
}

/// Registers of a multiprocessor.
inline constexpr int register_file = 65536;

/// An estimate of a thread's registers: accumulators, slots, operands of the multiply-adds,
/// addresses, and the loads of the next panel. `architecture`: the target's.
GEMMERY_HOST_DEVICE
constexpr int register_estimate(const SkinnyDesign& design, int architecture = 80) {
  const bool is_along_k = design.b_major == Major::k;
  const int word = word_bytes(design) / 4;
  const int ring = design.loads * design.slots * ((load_bytes(design) + 3) / 4);
  const int operands = (is_along_k ? design.loads * run_words(design) : design.rows) * word;
  const int addresses = is_along_k ? 2 * design.loads : 4;
  const int unit_bytes = panel_unit_words(design) * k_per_word(design) * bytes_of(design.a);
  const int lines = is_along_k ? 1 : design.rows;
  const int units = panel_units(design);
  const int ahead = units_ahead(design);
  const int panel = ahead * lines * ((unit_bytes + 3) / 4) + (units > ahead ? 4 : 0);
  constexpr int rest = 32;
  // Without these, ptxas 13.0 spilled on some target: where k is split; for 8-bit floats, which are
  // decoded; for vectors of 8 bytes in four slots; along k on sm_100 and later, where it keeps more
  // addresses, above all those of elements that are not adjacent.
  const int split = !is_along_k || !design.splits_k ? 0 : design.rows >= 4 ? 20 : 4;
  const int decoded =
      design.rows == 8 && bytes_of(design.b) == 1 && design.accumulator == DType::float32 ? 28 : 0;
  const int halves = is_along_k && load_bytes(design) == 8 && design.slots == 4 ? 20 : 0;
  const int later = !is_along_k || architecture < 100 ? 0 : design.b_vector_bytes == 0 ? 72 : 40;
  const int registers = accumulators_per_thread(design) * word + ring + operands + addresses +
                        panel + rest + split + decoded + halves + later;
  constexpr int fewest = 96;  // with loads of a few bytes most of it is addresses
  constexpr int unit = 8;     // in which a thread gets registers
  return registers > fewest ? (registers + unit - 1) / unit * unit : fewest;
}

/// The least number of blocks per multiprocessor, which caps registers.
GEMMERY_HOST_DEVICE
constexpr int least_blocks_per_multiprocessor(const SkinnyDesign& design, int architecture = 80) {
  constexpr int thread_limit = 1536;  // of the smallest multiprocessor
  const int by_registers =
      register_file / (register_estimate(design, architecture) * design.threads);
  const int by_threads = thread_limit / design.threads;
  const int blocks = by_registers < by_threads ? by_registers : by_threads;
  return blocks > 1 ? blocks : 1;
}

/// True if a multiprocessor of a target has the registers for one block.
GEMMERY_HOST_DEVICE
constexpr bool has_registers(const SkinnyDesign& design, int architecture = 80) {
  return register_estimate(design, architecture) * design.threads <= register_file;
}

// --- legality ------------------------------------------------------------------------------------

enum class SkinnyFault : unsigned char {
  none,
  operand_types,
  c_type,
  out_type,
  a_vector_bytes,
  b_vector_bytes,
  c_vector_bytes,
  out_vector_bytes,
  rows,
  threads,
  loads,
  lanes,
  slots,
  accumulators,
  shared_bytes
};

namespace detail {

GEMMERY_HOST_DEVICE
constexpr bool is_skinny_vector(DType dtype, int bytes) {
  return bytes == 0 || (is_power_of_two(bytes) && bytes >= bytes_of(dtype) && bytes <= 16);
}

/// True if 56 bytes spilled on sm_120 (ptxas 13.0): e4m3, which takes the most instructions to
/// decode, for eight rows of which a thread copies runs of more than a word.
GEMMERY_HOST_DEVICE
constexpr bool exceeds_registers_of_blackwell(const SkinnyDesign& design) {
  return design.b == DType::float8_e4m3fn && design.b_major == Major::k &&
         load_bytes(design) == 16 && design.rows == 8 && design.slots >= 4 &&
         bytes_of(design.a) > 1 && panel_unit_words(design) > 1;
}

}  // namespace detail

/// The first field that makes a design illegal, or none.
GEMMERY_HOST_DEVICE
constexpr SkinnyFault find_fault(const SkinnyDesign& design) {
  using namespace detail;
  constexpr int shared_limit = 99 * 1024;  // of a block on every target from sm_80 to sm_121
  if (!accepts_operand(design.accumulator, design.a) ||
      !accepts_operand(design.accumulator, design.b))
    return SkinnyFault::operand_types;
  if (design.has_c && !accepts_output(design.accumulator, design.c)) return SkinnyFault::c_type;
  if (!accepts_output(design.accumulator, design.out)) return SkinnyFault::out_type;
  if (!is_skinny_vector(design.a, design.a_vector_bytes)) return SkinnyFault::a_vector_bytes;
  if (!is_skinny_vector(design.b, design.b_vector_bytes) ||
      (design.b_major == Major::extent && design.b_vector_bytes == 0))
    return SkinnyFault::b_vector_bytes;
  if (design.has_c && !is_skinny_vector(design.c, design.c_vector_bytes))
    return SkinnyFault::c_vector_bytes;
  if (!is_skinny_vector(design.out, design.out_vector_bytes)) return SkinnyFault::out_vector_bytes;
  if (!is_power_of_two(design.rows) || design.rows > 8) return SkinnyFault::rows;
  if (!is_power_of_two(design.threads) || design.threads < 32 || design.threads > 1024)
    return SkinnyFault::threads;
  if (!is_power_of_two(design.loads) || design.loads > 8) return SkinnyFault::loads;
  const int fewest_lanes = design.b_major == Major::k ? 32 : 8;
  if (!is_power_of_two(design.lanes) || design.lanes < fewest_lanes || design.lanes > 32)
    return SkinnyFault::lanes;
  if (design.slots < 2 || design.slots > 8) return SkinnyFault::slots;
  const int words = accumulators_per_thread(design) * word_bytes(design) / 4;
  if (words > 64) return SkinnyFault::accumulators;
  constexpr int most_registers = 224;  // of 255: it is an estimate
  if (register_estimate(design) > most_registers || exceeds_registers_of_blackwell(design))
    return SkinnyFault::slots;
  if (!has_registers(design)) return SkinnyFault::threads;
  return shared_bytes(design) > shared_limit ? SkinnyFault::shared_bytes : SkinnyFault::none;
}

GEMMERY_HOST_DEVICE
constexpr bool is_legal(const SkinnyDesign& design) {
  return find_fault(design) == SkinnyFault::none;
}

}  // namespace gemmery::abi
