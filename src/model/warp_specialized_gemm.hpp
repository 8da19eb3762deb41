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
  int stage_bytes = 0;        // of shared memory
  int consumers = 1;          // warpgroups that multiply one tile
  int wgmma_columns = 0;      // of the tile's, that one wgmma multiplies
  bool is_ping_pong = false;  // two groups of them take tiles in turn
  int band_tiles = 1;         // height of the bands in which tiles of a cluster are walked
  bool is_band_of_rows = true;
  int slab_bytes = 0;  // of out, stored at once by a warpgroup
  int split_k = 1;     // blocks of a cluster that multiply shares of k of one tile
};

// What the program of an epilogue adds to storing D.
struct ProgramWork {
  double instructions = 0;  // of machine code, for each element of out
  double bytes = 0;         // of the full tensors that it reads and writes
  int full_inputs = 0;      // of which it reads
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
  double k_areas;       // wgmmas of a stage, in units of tile_k
  double k_area_sides;  // rows and columns that they read, in units of tile_k
  double wgmma_columns;
  double stage_bytes;
  double tile_k;
  double tile_m;
  double stored_columns;       // by one block
  double other_blocks;         // that multiply shares of k of the same tile
  double sums_from_others;     // of a row, that a block adds to its own
  double slabs_per_tile_byte;  // of a warpgroup
  double usable_share;         // of the multiprocessors
  bool has_one_consumer;
  bool is_ping_pong;
  bool is_clustered;
  bool is_band_of_rows;
};

// What the fit of tools/fit_sm90.py finds (doubles only: it reads and writes them in this order,
// here) from bench/results/sm90-designs-h200.csv, two H200, 2026-11-21 and 22.
struct WarpSpecializedConstants {
  // From the end of the kernel before to the start of the first block, and back.
  double launch_us = 0.1;
  // Clocks from a block's start to its first products, beyond waiting for memory.
  double fill_clocks = 50;
  // Clocks that a cluster adds to the start and end of a kernel.
  double cluster_clocks = 1650;
  // Clocks between two wgmmas of a warpgroup.
  double issue_clocks = 7.85;
  // Clocks of a stage that multiplying cannot hide, where several warpgroups share a tile, and
  // where one is alone with it.
  double stage_clocks = 2;
  double lone_stage_clocks = 4.11;
  // Clocks of a tile beside its stages: first stage, last sums.
  double tile_clocks = 50;
  // Share of bytes brought into shared memory that hinder reading it.
  double shared_write_share = 0.755;
  // Bytes per clock that one multiprocessor asks the second-level cache for. A limit on what all
  // ask for, or receive, is not seen beside it.
  double ask_bytes_per_clock = 79.5;
  // Clocks from asking for a stage to having it; more where the other block of a cluster must have
  // released it, too; and more for each cluster that reads the same lines of the second-level cache
  // at the same time: 16x4096x4096 takes 25 us in 128 tiles of 64x32, 15 us in 43 of 64x96.
  double load_clocks = 1800;
  double cluster_load_clocks = 675;
  double sharer_clocks = 13.8;
  // What asking takes longer where rows begin amid the cache's sectors of 32 bytes: 264x1240x904
  // gets 5.4 TB/s whatever the tile. And storing.
  double ragged_load_share = 1.98;
  double ragged_store_share = 0.02;
  // Clocks of storing a tile, of each slab of a warpgroup; bytes per clock that one multiprocessor
  // stores, and all of them.
  double store_clocks = 50;
  double slab_clocks = 613;
  double store_bytes_per_clock = 9.55;
  double store_bytes_per_clock_of_all = 2830;
  // Clocks between a ping-pong group's last wgmma of a tile and the other's first; share of a store
  // by which it slows the multiplying group down.
  double turn_clocks = 398;
  double store_interference = 0.177;
  // Where k is split: clocks of a tile from a block's last sums to those of all blocks, for each
  // other block of the cluster (1x2112x7168 takes 11.2 us with k in 4, 13.6 with k in 8: races of
  // b4a2624, H200), and bytes per clock that a multiprocessor takes from the others.
  double exchange_clocks = 200;
  double exchange_bytes_per_clock = 6.15;
  // Share of the data sheet's bandwidth that reading reaches; how many bytes read a written one
  // stands for; bytes per clock that one multiprocessor
  // takes from memory.
  double memory_share = 0.92;
  double write_weight = 1;
  double memory_bytes_per_clock = 52;
  // Share of the second-level cache that keeps panels for the next wave.
  double l2_share = 1.2;
  // What two things that go on at a time add to the longer one where they are alike.
  double crowding_share = 0.299;
  // Clock while all tensor cores are busy all the time, and what it rises by the share of time that
  // they are not, up to the device's own.
  double full_load_ghz = 1.5;
  double idle_gain_ghz = 1.1;
};

// The parts of a prediction, in microseconds.
struct WarpSpecializedParts {
  double launch_us = 0;
  double fill_us = 0;         // first loads, which nothing overlaps
  double compute_us = 0;      // the busiest multiprocessor's tiles: multiplying, loading, storing
  double memory_us = 0;       // device memory, with what is read again
  double crowding_share = 0;  // of the shorter of these two, where they are alike

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
  double wait_clocks(const WarpSpecializedTerms& design, const Grid& grid) const noexcept;
  double time_exchange(const WarpSpecializedTerms& design) const noexcept;
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
  // How much longer accesses take because of where rows begin.
  double a_splits_;
  double b_splits_;
  double out_splits_;
  double out_element_bytes_;
  bool has_c_;
  int multiprocessors_;
  double clock_ghz_;
  // Divisions that are the same for all designs.
  struct Rates {
    double us_per_clock;
    double memory_us_per_byte;
    double memory_us_per_byte_of_one;  // multiprocessor
    double ask_clocks_per_byte;
    double store_clocks_per_byte;
    double store_clocks_per_byte_of_all;
    double per_l2_byte;
  };
  Rates rates_{};
};

}  // namespace gemmery::model
