// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a GEMM by warp-specialised, persistent blocks: producer warps load operands
// through a ring of stages in shared memory, consumer warpgroups multiply and store. Arithmetic
// only.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "model/group_load.hpp"

namespace gemmery::model {

// The facts of a kernel that a prediction needs. m counts rows of what the device computes, which
// is out^T if `is_turned`.
struct WarpSpecializedDesign {
  int tile_m = 0;
  int tile_n = 0;
  int tile_k = 0;  // of one stage
  int cluster_m = 1;
  int cluster_n = 1;
  int stages = 0;
  int stage_bytes = 0;    // of shared memory
  int consumers = 1;      // warpgroups that share a tile
  int wgmma_columns = 0;  // columns of the tile per wgmma
  int turns = 1;          // groups of consumers that take tiles in turn
  int band_tiles = 1;     // height of the bands in which clusters' tiles are walked
  bool is_band_of_rows = true;
  int staging_bytes = 0;  // of a warpgroup's staging tile for out
  int split_k = 1;        // blocks of a cluster that share the k of one tile
  // True if the tensor cores add to the accumulators the row vector that the epilogue adds first.
  bool adds_vector = false;
  int transposed_bytes = 0;  // of a stage, which warps read and write again before wgmma reads them
  bool is_promoted = false;  // FADDs add the products of each stage to the accumulators
  // With scales of blocks along k: how often a stage's products are added, by FMAs, and the
  // multiplications of scales beside each.
  bool is_scaled = false;
  int promotions = 1;
  int scale_products = 0;
  bool takes_registers = false;  // wgmma takes an operand from registers, where warps transposed it
  int decoded_rows = 0;          // or decoded it: rows of codes of a consumer
  bool prefetches_inputs = false;  // C is prefetched to L2 in the mainloop, if columns are adjacent
  // Products of parts of split operands, by their share of the bytes; not measured on a board.
  double products = 1;
};

// The work of an epilogue beyond storing D.
struct ProgramWork {
  double instructions = 0;  // machine instructions per element of out
  double bytes = 0;         // of the full tensors that it reads and writes
  double slow_results = 0;  // of the special function unit, per element of out
  int full_inputs = 0;      // full tensors that it reads
  bool is_dense = false;    // arithmetic without waits: few independent chains
  // The instructions that a design saves by adding a vector, and if the rest is dense then.
  double addend_instructions = 0;
  bool is_dense_without_addend = false;
};

// The terms of a design that do not depend on the problem: computed once, used often.
struct WarpSpecializedTerms {
  explicit WarpSpecializedTerms(const WarpSpecializedDesign& design) noexcept;

  // The same design with another number of stages.
  WarpSpecializedTerms with_stages(int stages) const noexcept {
    WarpSpecializedTerms terms = *this;
    terms.stages_inverse = 1.0 / stages;
    return terms;
  }

  // Divides by multiplying with the inverse, in a third of the time.
  struct Divisor {
    double size;
    double inverse;
  };
  Divisor cluster_rows;
  Divisor cluster_columns;
  Divisor cluster_k;
  Divisor cluster_m;
  Divisor cluster_n;
  Divisor cluster_size;
  Divisor band;
  double stages_inverse;
  double tall;          // 1 or 0
  double k_columns;     // of a stage's wgmmas, in units of tile_k
  double k_area_sides;  // rows and columns that these read, in units of tile_k
  double stage_bytes;
  double tile_k;
  double tile_m;
  double tiles_amid_lines;        // share that begins within a cache line if n is contiguous
  double stored_columns;          // by one block
  double other_blocks;            // that share the tile's k
  double sums_from_others;        // accumulators per row that a block receives from others
  double staging_tiles_per_byte;  // of a warpgroup
  double usable_share;            // of the multiprocessors
  double turns;
  double turns_inverse;
  double addend_clocks;  // per tile, if the tensor cores add a vector
  // Per stage: the KiB that a consumer transposes, its promoted accumulators per thread, and its
  // share of the tile's products.
  double transposed_kib;
  bool splits;  // these KiB are split into parts, not transposed
  double promoted_sums;
  double promotions;
  double scale_products;
  double consumer_share;
  bool takes_registers;
  double decoded_rows;
  bool is_scaled;
  bool prefetches_inputs;
  bool is_clustered;
  bool is_band_of_rows;
  bool adds_vector;
};

// Found by tools/fit_sm90.py (doubles only: it reads and writes them in this order, here) from
// tests/model/sm90_designs_h200.csv, measured on three H200; docs/rooms/model.md.
struct WarpSpecializedConstants {
  // Clocks from the end of the previous kernel to a block's first products, without waiting for
  // memory, and from its last store to the kernel's end; more in a cluster.
  double fill_clocks = 2640;
  double cluster_clocks = 788;
  // Share of the bytes written to shared memory that delay reads of it.
  double shared_write_share = 0.245;
  // Additional time of the mainloop with tiles of 256 rows and more. Not understood: without it
  // such tiles are predicted 1.3 to 2.5 % too fast compared with others on problems of 1e11
  // operations and more.
  double tall_share = 0.0252;
  // Nanoseconds (the cache has a clock of its own) from requesting a stage to having it; more if
  // another block of the cluster must have released it, too.
  double load_ns = 1380;
  double cluster_load_ns = 33.3;
  // Bytes per nanosecond that the second-level cache delivers, for each multiprocessor of the
  // device. Requests of several multiprocessors for the same line count for each, although some are
  // merged.
  double load_bytes_per_ns = 356;
  // Additional time of a request if all multiprocessors request the same line at a time; in
  // proportion if some do.
  double queue_share = 0.127;
  // Additional time of reading if rows begin within 32-byte sectors, and within 128-byte lines, as
  // with 264x1240x904 and with tiles of 176 columns if n is contiguous: 7 % more than those of 192
  // at 8192^3. And of storing within sectors.
  double split_sector_share = 2.96;
  double split_line_share = 3.11;
  double split_store_share = 1.08;
  // Clocks per staging tile that a warpgroup stores; bytes per clock of a multiprocessor's stores;
  // share of a store by which a group slows down the one that multiplies meanwhile.
  double staging_clocks = 133;
  double store_bytes_per_clock = 23.2;
  double store_interference = 0.244;
  // With split k: clocks per tile from a block's last accumulators to the total of all blocks, for
  // each other block of the cluster (1x2112x7168 takes 11.2 us with k in 4 parts, 13.6 in 8; H200),
  // and bytes per clock that a multiprocessor receives from the others.
  double exchange_clocks = 875;
  double exchange_bytes_per_clock = 13.9;
  // Share of a wave's missing tiles by which it is shorter: fewer tiles compete for the cache and
  // the memory in the last wave, and the tiles of the previous wave do not all end at the same
  // time.
  double short_wave_gain = 0.509;
  // Share of the data sheet's bandwidth that reading reaches; bytes read that cost as much as one
  // written.
  double memory_share = 0.97;
  double write_weight = 1.27;
  // Additional time of reading an operand from memory if several clusters request the same lines at
  // a time: 128x4096x14336 with k in 2 parts takes 36 us in 64 tiles of 128x64, 41 in tiles of
  // 64x128.
  double sharer_share = 0.136;
  // Share of the second-level cache that keeps panels for the next wave.
  double l2_share = 0.749;
  // The clock rate while all tensor cores are always busy. It rises linearly as they are less busy,
  // up to the device's own clock if they are busy half of the time.
  double full_load_ghz = 1.35;
  // For promoted 8-bit floats, from a consumer's last wgmma of a stage to the first one of the next
  // stage: clocks, and clocks per accumulator of a thread. Another consumer of the tile multiplies
  // meanwhile, those of other tiles wait for their turn: at 4096^3 128x128 takes 115 us if two
  // consumers share it, 128x96 in turns 169 (H100, h100-sm90-types.md).
  double promotion_clocks = 82.6;
  double promotion_clocks_per_sum = 3.14;
  // In addition with scales: clocks per stage, and per accumulator where those of columns are
  // multiplied beside those of rows, which the FMA multiplies. At 4096^3 128x128 with scales of
  // rows takes 140 us, 192x96 with both 185, and 425 with both four times a stage (H100,
  // h100-scaled.md; 131 to 148 and 169 to 183 on an H200; by hand, within a seventh).
  double scaled_stage_clocks = 150;
  double scale_clocks_per_sum = 6.5;
  // Per stage and row of codes of a consumer, which are decoded between products: at 4096^3 int4
  // with scales in 128x128 takes 311 us, in 256x64 412, with zero points 360; int8 without scales
  // in 128x256 189, in 256x128 264, in 128x128 in turns 294 (H100, h100-scaled.md; by hand, as
  // above).
  double decoded_row_clocks = 3.5;
  // The share of it for which wgmmas wait where no scales do.
  double bare_decoding_share = 0.5;
  // For operands that are transposed in shared memory: clocks per stage, and clocks per KiB that a
  // consumer transposes, of 8 and of 32 bits, or splits into parts. Its wgmmas wait for them (H100,
  // h100-sm90-types.md; transposed 32 bits: H200, h200-copies.md).
  double transposition_clocks = 86;
  double byte_transposition_clocks_per_kib = 17.7;
  double word_transposition_clocks_per_kib = 34;
  double split_clocks_per_kib = 7.98;
  // Clocks per stage in which 8-bit operands are loaded to registers and transposed there.
  double register_operand_clocks = 122;
  // With k split through the workspace: from a block's last accumulators in registers to the
  // counter of its tile; bytes per clock at which a block stores its part, and the last one to
  // arrive adds all parts (H200, 2026-11-27: 256x256x65536 takes 29.2 us with 128x128 in 2 x 16
  // parts, of which a block adds 16 of 32 KB, and 42.5 in 32, of which it adds 32 of 64 KB). By
  // these times it is about 70; at 70 slices rank too low on an H100, where they were timed when a
  // block requested one part at a time.
  double part_latency_us = 1.2;
  double part_bytes_per_clock = 95;
  // Bytes per nanosecond that the second-level cache delivers to a stream's blocks. They request
  // lines of different k, so few requests are merged (512x512x65536, H100: 3600 to 5900).
  double stream_bytes_per_ns = 7130;
};

// The parts of a prediction, in microseconds.
struct WarpSpecializedParts {
  double fill_us = 0;     // launch and first loads, which nothing overlaps
  double compute_us = 0;  // the busiest multiprocessor's tiles: mainloop, loads, stores
  double memory_us = 0;   // device memory, including repeated reads

  double total_us() const noexcept;
};

// A problem on a device; predicts designs for it.
class WarpSpecializedModel {
 public:
  WarpSpecializedModel(const GemmProblem& problem, bool is_turned, const DeviceInfo& device,
                       const WarpSpecializedConstants& constants = {},
                       const ProgramWork& program = {}) noexcept;

  WarpSpecializedParts predict(const WarpSpecializedTerms& design) const noexcept {
    return predict(design, nullptr);
  }
  // For groups whose sizes are known; the problem has groups of the average size. Not for clusters.
  WarpSpecializedParts predict(const WarpSpecializedTerms& design,
                               const GroupLoad& groups) const noexcept {
    return predict(design, &groups);
  }
  WarpSpecializedParts predict(const WarpSpecializedDesign& design) const noexcept {
    return predict(WarpSpecializedTerms(design));
  }

  // The clock that the power limit allows on this problem.
  double clock_ghz() const noexcept { return clock_ghz_; }

 private:
  struct Grid;
  struct TileClocks;
  double settled_clock_ghz(const GemmProblem& problem, const DeviceInfo& device) const noexcept;
  WarpSpecializedParts predict(const WarpSpecializedTerms& design,
                               const GroupLoad* groups) const noexcept;
  Grid lay_out(const WarpSpecializedTerms& design, const GroupLoad* groups) const noexcept;
  double latency_clocks(const WarpSpecializedTerms& design) const noexcept;
  double time_stage(const WarpSpecializedTerms& design, const Grid& grid) const noexcept;
  double time_consumers(const WarpSpecializedTerms& design, double products) const noexcept;
  double c_clocks(const WarpSpecializedTerms& design) const noexcept;
  double time_exchange(const WarpSpecializedTerms& design) const noexcept;
  double time_period(const WarpSpecializedTerms& design, const TileClocks& tile) const noexcept;
  bool keeps_to_gaps(const WarpSpecializedTerms& design) const noexcept;
  double instructions(const WarpSpecializedTerms& design) const noexcept;
  double interference_clocks(const WarpSpecializedTerms& design) const noexcept;
  double tile_clocks_of_program(const WarpSpecializedTerms& design) const noexcept;
  TileClocks time_tile(const WarpSpecializedTerms& design, const Grid& grid) const noexcept;
  double memory_bytes(const WarpSpecializedTerms& design, const Grid& grid) const noexcept;

  WarpSpecializedConstants constants_;
  ProgramWork program_;
  double rows_;
  double columns_;
  double k_;
  double batches_;
  double element_bytes_;         // of A and B as tensor cores multiply them
  double row_element_bytes_;     // of the operand along rows, as it is loaded
  double column_element_bytes_;  // likewise along columns
  double a_bytes_;
  double b_bytes_;
  double out_bytes_;  // C and a program's tensors included
  // A and B as a block requests them: elements to which a copy's rows or columns are rounded up,
  // and how much longer accesses take because of where rows begin.
  double a_box_;
  double b_box_;
  double a_splits_;
  double b_splits_;
  double out_splits_;
  double out_element_bytes_;
  bool has_c_;
  bool has_adjacent_c_;  // along the columns that the device computes
  int multiprocessors_;
  double clock_ghz_;
  // Values that are the same for all designs, above all divisions.
  struct Rates {
    double us_per_clock;
    double memory_us_per_byte;
    double load_clocks;
    double cluster_load_clocks;
    double load_clocks_per_byte;  // per multiprocessor that requests
    double queue_share;           // per cluster
    double store_clocks_per_byte;
    double per_l2_byte;
  };
  Rates rates_{};
};

}  // namespace gemmery::model
