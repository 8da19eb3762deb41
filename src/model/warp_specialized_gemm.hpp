// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a GEMM by warp-specialised, persistent blocks: some warps bring operands
// through a ring of stages in shared memory, others multiply and store. Arithmetic only.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

namespace gemmery::model {

// What a prediction needs to know of a kernel. m counts rows of what the device computes, which is
// out^T where `is_turned`.
struct WarpSpecializedDesign {
  int tile_m = 0;
  int tile_n = 0;
  int tile_k = 0;  // of one stage
  int cluster_m = 1;
  int cluster_n = 1;
  int stages = 0;
  int stage_bytes = 0;    // of shared memory
  int consumers = 1;      // warpgroups that multiply one tile
  int wgmma_columns = 0;  // of the tile's, that one wgmma multiplies
  int turns = 1;          // groups of them that take tiles in turn
  int band_tiles = 1;     // height of the bands in which tiles of a cluster are walked
  bool is_band_of_rows = true;
  int staging_bytes = 0;  // of out, stored at once by a warpgroup
  int split_k = 1;     // blocks of a cluster that multiply shares of k of one tile
  // Whether the tensor cores add the row vector that a program adds to the sums first.
  bool adds_vector = false;
};

// What the program of an epilogue adds to storing D.
struct ProgramWork {
  double instructions = 0;  // of machine code, for each element of out
  double bytes = 0;         // of the full tensors that it reads and writes
  double slow_results = 0;  // of the unit for powers and reciprocals, for each element of out
  int full_inputs = 0;      // of which it reads
  bool is_dense = false;    // its arithmetic waits for nothing, so that few chains of it do
  // What a design that adds a vector spares it, and whether it is dense then.
  double addend_instructions = 0;
  bool is_dense_without_addend = false;
};

// What predictions take of a design whatever the problem: worked out once, asked often.
struct WarpSpecializedTerms {
  explicit WarpSpecializedTerms(const WarpSpecializedDesign& design) noexcept;

  // Of the same design with other stages.
  WarpSpecializedTerms with_stages(int stages) const noexcept {
    WarpSpecializedTerms terms = *this;
    terms.stages_inverse = 1.0 / stages;
    return terms;
  }

  // By which extents are divided: a product takes a third of the time.
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
  double k_area_sides;  // rows and columns that they read, in units of tile_k
  double stage_bytes;
  double tile_k;
  double tile_m;
  double tiles_amid_lines;     // share that begin amid the cache's lines where n is adjacent
  double stored_columns;       // by one block
  double other_blocks;         // that multiply shares of k of the same tile
  double sums_from_others;     // of a row, that a block adds to its own
  double staging_tiles_per_byte;  // of a warpgroup
  double usable_share;         // of the multiprocessors
  double turns;
  double turns_inverse;
  double addend_clocks;  // of a tile, where the tensor cores add a vector
  bool is_clustered;
  bool is_band_of_rows;
  bool adds_vector;
};

// What the fit of tools/fit_sm90.py finds (doubles only: it reads and writes them in this order,
// here) from tests/model/sm90_designs_h200.csv, three H200, 2026-11-22; docs/rooms/model.md.
struct WarpSpecializedConstants {
  // Clocks from the end of the kernel before to a block's first products, beyond waiting for
  // memory, and from its last store to the kernel's end; more in a cluster.
  double fill_clocks = 2640;
  double cluster_clocks = 788;
  // Share of bytes brought into shared memory that hinder reading it.
  double shared_write_share = 0.245;
  // What multiplying takes longer in tiles of 256 rows and more. Not understood: without it such
  // tiles are predicted 1.3 to 2.5 % too fast beside others on problems of 1e11 operations and
  // more.
  double tall_share = 0.0252;
  // Nanoseconds, as the cache has a clock of its own, from asking for a stage to having it; more
  // where the other block of a cluster must have released it, too.
  double load_ns = 1380;
  double cluster_load_ns = 33.3;
  // Bytes per nanosecond that the second-level cache gives, for each multiprocessor of the device.
  // Requests of several for the same line count for each, although some are served together.
  double load_bytes_per_ns = 356;
  // What asking for a line takes longer where all multiprocessors ask for it at a time, and in
  // proportion where some do.
  double queue_share = 0.127;
  // What reading takes longer where rows begin amid the cache's sectors of 32 bytes, and amid its
  // lines of 128, as 264x1240x904 does and tiles of 176 columns where n is adjacent: 7 % later at
  // 8192^3 than those of 192. And storing, amid sectors.
  double split_sector_share = 2.96;
  double split_line_share = 3.11;
  double split_store_share = 1.08;
  // Clocks of each staging tile that a warpgroup stores, and bytes per clock of a multiprocessor's;
  // share of a store by which a group slows the one down that multiplies meanwhile.
  double staging_clocks = 133;
  double store_bytes_per_clock = 23.2;
  double store_interference = 0.244;
  // Where k is split: clocks of a tile from a block's last sums to those of all blocks, for each
  // other block of the cluster (1x2112x7168 takes 11.2 us with k in 4, 13.6 with k in 8: races of
  // b4a2624, H200), and bytes per clock that a multiprocessor takes from the others.
  double exchange_clocks = 875;
  double exchange_bytes_per_clock = 13.9;
  // Share of a wave's missing tiles by which it is shorter: those at work in the last one have the
  // cache and the memory to themselves, and not all end the one before at a time.
  double short_wave_gain = 0.509;
  // Share of the data sheet's bandwidth that reading reaches; how many bytes read a written one
  // stands for.
  double memory_share = 0.97;
  double write_weight = 1.27;
  // What reading an operand from memory takes longer where several clusters ask for the same lines
  // at a time: 128x4096x14336 with k in 2 takes 36 us in 64 tiles of 128x64, 41 in those of 64x128.
  double sharer_share = 0.136;
  // Share of the second-level cache that keeps panels for the next wave.
  double l2_share = 0.749;
  // Clock while all tensor cores are busy all the time; it rises in proportion until they are for
  // half of it, to the device's own.
  double full_load_ghz = 1.35;
};

// The parts of a prediction, in microseconds.
struct WarpSpecializedParts {
  double fill_us = 0;     // launch and first loads, which nothing overlaps
  double compute_us = 0;  // the busiest multiprocessor's tiles: multiplying, loading, storing
  double memory_us = 0;   // device memory, with what is read again

  double total_us() const noexcept;
};

// A problem on a device; predicts designs on it one by one.
class WarpSpecializedModel {
 public:
  WarpSpecializedModel(const GemmProblem& problem, bool is_turned, const DeviceInfo& device,
                       const WarpSpecializedConstants& constants = {},
                       const ProgramWork& program = {}) noexcept;

  WarpSpecializedParts predict(const WarpSpecializedTerms& design) const noexcept;
  WarpSpecializedParts predict(const WarpSpecializedDesign& design) const noexcept {
    return predict(WarpSpecializedTerms(design));
  }

  // That power allows on this problem.
  double clock_ghz() const noexcept { return clock_ghz_; }

 private:
  struct Grid;
  struct TileClocks;
  double settled_clock_ghz(const GemmProblem& problem, const DeviceInfo& device) const noexcept;
  Grid lay_out(const WarpSpecializedTerms& design) const noexcept;
  double latency_clocks(const WarpSpecializedTerms& design) const noexcept;
  double time_stage(const WarpSpecializedTerms& design, const Grid& grid) const noexcept;
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
  double element_bytes_;  // of A and B
  double a_bytes_;
  double b_bytes_;
  double out_bytes_;  // C and a program's tensors included
  // A and B as a block asks for them: elements to which a copy's rows or columns are rounded up,
  // and how much longer accesses take because of where rows begin.
  double a_box_;
  double b_box_;
  double a_splits_;
  double b_splits_;
  double out_splits_;
  double out_element_bytes_;
  bool has_c_;
  int multiprocessors_;
  double clock_ghz_;
  // What is the same for all designs, divisions above all.
  struct Rates {
    double us_per_clock;
    double memory_us_per_byte;
    double load_clocks;
    double cluster_load_clocks;
    double load_clocks_per_byte;  // that one multiprocessor asks for, for each that asks
    double queue_share;           // for each cluster
    double store_clocks_per_byte;
    double per_l2_byte;
  };
  Rates rates_{};
};

}  // namespace gemmery::model
