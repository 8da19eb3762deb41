// SPDX-License-Identifier: Apache-2.0
// GEMM on Hopper's tensor cores: out = alpha * a b + beta * c. What an emitted
// epilogue makes of a b instead is in sm90_program.cuh, which others need not compile.
//
//   A, B in global memory
//     | copy/tma_operand: one thread of warpgroup 0, tiles of 64 k, zeros beyond edges; blocks of a
//     | cluster bring halves of what they share, to both
//   a[stage], b[stage] in shared memory, a ring between barriers (pipeline/stage_ring)
//     | copy/transposed_atom: what wgmma takes K-major only is transposed in place
//     | mma/wgmma: the other warpgroups, each with its share of the tile's rows or columns, or each
//     | with every second or third tile; one more wgmma may add a program's row vector
//   accumulators in registers
//     | pipeline/split_sums: if the blocks of a cluster split k, each adds up the accumulators of
//     | all of them for some of the tile's columns; pipeline/join_parts, pipeline/warpgroup_parts:
//     | if blocks of the launch do, one of them gets those of all through the workspace
//     | epilogue/warpgroup_store: alpha, beta * c, rounding; or epilogue/warpgroup_program: a
//     | program, its further results and reductions. Meanwhile the ring fills for the next tile
//   staging tiles in shared memory
//     | TMA stores, clipped at edges
//   out in global memory
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/copy/tma_operand.cuh>
#include <device/copy/transposed_atom.cuh>
#include <device/epilogue/warpgroup_store.cuh>
#include <device/mma/wgmma.cuh>
#include <device/pipeline/split_sums.cuh>
#include <device/pipeline/stage_ring.cuh>
#include <device/pipeline/turns.cuh>
#include <device/pipeline/warpgroup_parts.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/cluster.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/grid_dependency.cuh>
#include <device/ptx/warp.cuh>
#include <device/schedule/persistent_shares.cuh>
#include <device/schedule/persistent_tiles.cuh>

namespace gemmery::device {

template <abi::Sm90Design design>
struct Sm90Shared {
  static constexpr int staging_tiles =
      abi::consumer_count(design) * abi::staging_tiles_per_consumer;
  alignas(1024) char a[design.stages][abi::a_stage_bytes(design)];
  alignas(1024) char b[design.stages][abi::b_stage_bytes(design)];
  alignas(1024) char staging[staging_tiles][abi::staging_bytes(design)];
  StageBarriers<design.stages> barriers;
  SplitSumsShared<design> split_sums;
  WarpgroupPartsShared<design> parts;
};

template <abi::Sm90Design design>
class Sm90Gemm {
 public:
  using Shared = Sm90Shared<design>;

  __device__ Sm90Gemm(const abi::Sm90Params& params, Shared& shared)
      : params_(params),
        shared_(shared),
        ring_(ptx::cvta_shared(&shared.barriers)),
        rank_(cluster_size == 1 ? 0 : ptx::cluster_ctarank()) {}

  /// Initialises the barriers in the whole cluster before any thread arrives at them. All this may
  /// overlap the end of the previous kernel; afterwards that kernel's writes are visible. Every
  /// thread waits for it, also those that access no global memory: then the end of this kernel
  /// implies the end of all kernels before it, on which a plain launch behind it relies.
  template <class Initialize>
  __device__ void prepare(Initialize&& initialize_finish) const {
    initialize_finish();
    if (threadIdx.x == 0) {
      ptx::prefetch_tensormap(params_.a);
      ptx::prefetch_tensormap(params_.b);
      if constexpr (abi::stores_by_tma(design)) ptx::prefetch_tensormap(params_.out);
      ring_.initialize(abi::consumers_per_tile(design) * abi::warps_per_consumer);
      TileSums::initialize(shared_.split_sums);
      ptx::fence_mbarrier_init();
    }
    clear_stages(shared_.a, params_.a_bytes);
    clear_stages(shared_.b, params_.b_bytes);
    sync_cluster();
    ptx::griddepcontrol_wait();
  }

  /// One thread loads the operands of all of the cluster's tiles, as far ahead as stages are free.
  /// Then it lets the dependent kernel start, if the host allows it (else that starts when blocks
  /// exit), so that its prologue overlaps our last stages. Memory is safe: it waits for our end in
  /// `prepare`.
  __device__ __forceinline__ void produce() const {
    if (threadIdx.x != 0) return;
    const int first_k =
        params_.first_k + static_cast<int>(split_rank() * params_.k_blocks * tile_k);
    Cursor cursor;
#pragma unroll 1
    for (Tiles tiles = all_tiles(); !tiles.is_done(); tiles.advance()) {
      const OutputPlace place = place_of(tiles.position());
      const int k = first_k + static_cast<int>(first_k_block_of(tiles) * tile_k);
      const unsigned k_blocks = k_blocks_of(tiles);
#pragma unroll 1
      for (unsigned k_block = 0; k_block < k_blocks; ++k_block) {
        const unsigned barrier = ring_.acquire(cursor, params_.a_bytes + params_.b_bytes);
        load_stage(cursor.stage, place, k + static_cast<int>(k_block * tile_k), barrier);
        cursor.advance();
      }
    }
    if (params_.lets_next_begin != 0) ptx::griddepcontrol_launch_dependents();
  }

  /// A warpgroup multiplies and stores its share of the cluster's tiles: of all of them, or of
  /// every second or third one. `finish` computes out's values from the
  /// accumulators.
  template <class Finish>
  __device__ __forceinline__ void consume(unsigned consumer, Finish finish) const {
    const Share share = share_of(consumer);
    const unsigned thread = threadIdx.x % abi::warpgroup_threads;
    WarpgroupStore<stored> output(params_, ptx::cvta_shared(&shared_.staging), consumer, thread);
    TileSums tile_sums(shared_.split_sums, consumer, thread, rank_);
    Cursor cursor;
    Sums sums;
    Tiles tiles = all_tiles();
    const auto skip_tiles = [&](unsigned count) {
      cursor.advance_by(count * params_.k_blocks);
      tiles.advance_by(count);
    };
    const auto place_here = [&] { return place_of(tiles.position(), share); };
    if constexpr (takes_turns) skip_tiles(consumer);
    OutputPlace place = place_here();
    if constexpr (Finish::adds_vector) {
      if (!tiles.is_done()) finish.bring_next_addend(place);
    }
#pragma unroll 1
    while (!tiles.is_done()) {
      if constexpr (!looks_ahead) place = place_here();  // not kept while wgmmas are under way
      finish.begin_share(place);
      const Stage last_stage = multiply_in_turn(tiles, cursor, finish, consumer, sums);
      // Computes all about the next tile while wgmmas are still in flight, so that it can begin as
      // soon as this one is stored.
      if constexpr (looks_ahead) tiles.advance();
      if constexpr (takes_turns) skip_tiles(turns - 1);
      const OutputPlace next_place = place_here();  // this one's again where none looks ahead
      if constexpr (Finish::adds_vector) {
        if (!tiles.is_done()) finish.bring_next_addend(next_place);
      }
      if constexpr (!Finish::reads_early) finish_sums(sums, last_stage);
      if constexpr (!looks_ahead) place = place_here();
      const bool has_output = finish.begin_tile(place);
      auto first = finish.begin_block(place, 0);
      if constexpr (Finish::reads_early) finish_sums(sums, last_stage);
      if constexpr (Finish::reduces_whole_tiles) clear_beyond(sums, place);
      const auto& results = tile_sums.collect(sums, rows_left(place));
      if (has_output) store_tile(output, results, place, finish, first);
      if constexpr (looks_ahead) {
        place = next_place;
      } else {
        tiles.advance();
      }
    }
    finish.finish();
    output.finish();
  }

  /// The same where blocks share the k of tiles through the workspace. A warpgroup stores a tile
  /// if it gets all accumulators of its share of it, and reads for the epilogue only then: before
  /// it multiplies if that is certain.
  template <class Finish>
  __device__ __forceinline__ void consume_shares(unsigned consumer, Finish finish) const {
    const Share share = share_of(consumer);
    const unsigned thread = threadIdx.x % abi::warpgroup_threads;
    WarpgroupStore<stored> output(params_, ptx::cvta_shared(&shared_.staging), consumer, thread);
    const WarpgroupParts<design> parts(params_, shared_.parts, consumer, thread, rank_);
    Cursor cursor;
    Sums sums;
    Tiles tiles = all_tiles();
    const auto pass_shares = [&](unsigned count) {
      for (; count > 0 && !tiles.is_done(); --count) {
        cursor.advance_by(k_blocks_of(tiles));
        tiles.advance();
      }
    };
    if constexpr (takes_turns) pass_shares(consumer);
#pragma unroll 1
    while (!tiles.is_done()) {
      const bool begins_early = finishes_tile<design.split>(tiles.share());
      if (begins_early) finish.begin_share(place_of(tiles.position(), share));
      const Stage last_stage = multiply_in_turn(tiles, cursor, finish, consumer, sums);
      finish_sums(sums, last_stage);
      const OutputPlace place = place_of(tiles.position(), share);
      if (parts.join(tiles.shares(), tiles.share(), rows_left(place))) {
        if (!begins_early) finish.begin_share(place);
        if (finish.begin_tile(place)) {
          auto first = finish.begin_block(place, 0);
          store_tile(output, sums, place, finish, first);
        }
      }
      tiles.advance();
      if constexpr (takes_turns) pass_shares(turns - 1);
    }
    finish.finish();
    output.finish();
  }

  /// No block exits while arrivals of another block at its barriers are in flight.
  __device__ static void leave() {
    __syncwarp();
    if constexpr (cluster_size > 1) sync_cluster();
  }

 private:
  static constexpr abi::Sm90Design stored = abi::stored_design(design);
  static constexpr unsigned cluster_size = abi::cluster_size(design);
  static constexpr bool splits_k = design.split_k > 1;
  static constexpr bool has_parts = design.split != abi::SplitMode::none;
  /// True if a consumer computes its next tile before it stores this one. If k is split, tiles are
  /// few, and beside the accumulators of other blocks such a place spilled (ptxas 13.0).
  static constexpr bool looks_ahead = !splits_k;
  static constexpr unsigned tile_k = abi::tile_k(design);
  static constexpr unsigned turns = abi::turn_count(design);
  static constexpr bool takes_turns = abi::takes_turns(design);
  static_assert(looks_ahead || !takes_turns, "tiles are passed over before this one is stored");
  static constexpr unsigned rows_per_consumer =
      abi::blocks_per_consumer(design) * abi::sm90_block_rows;
  static constexpr unsigned columns_per_consumer = abi::columns_per_consumer(design);
  static constexpr TmaOperand a_operand{.major = design.a_major,
                                        .extent = design.tile_m,
                                        .atom = abi::atom_extent(design),
                                        .is_shared = design.cluster_n > 1};
  static constexpr TmaOperand b_operand{.major = design.b_major,
                                        .extent = design.tile_n,
                                        .atom = abi::atom_extent(design),
                                        .is_shared = design.cluster_m > 1};
  using Ring = StageRing<design.stages, abi::sharing_blocks(design)>;
  using Cursor = typename Ring::Cursor;
  using Stage = typename Ring::Filled;
  using Tiles = typename PersistentWork<design.split, design.raster>::Type;
  using StoredSums = WarpgroupSums<stored>;
  using Sums = ConsumerSums<design>;
  using TileSums = SplitSums<design, Sums, StoredSums>;

  __device__ static void sync_cluster() {
    if constexpr (cluster_size > 1) {
      ptx::barrier_cluster_arrive();
      ptx::barrier_cluster_wait();
    } else {
      __syncthreads();
    }
  }

  /// Sets what no copy fills to zero, once: an operand may be smaller than its tile. The loop has
  /// few rounds and is not unrolled: unrolled four times it was an eighth of a kernel's code.
  template <int stages, int stage_bytes>
  __device__ static void clear_stages(char (&operand)[stages][stage_bytes], unsigned brought) {
    if (brought == stage_bytes) return;
    constexpr unsigned zeros[4] = {};
    constexpr unsigned step = abi::thread_count(design) * sizeof zeros;
#pragma unroll 1
    for (unsigned byte = brought + threadIdx.x * sizeof zeros; byte < stage_bytes; byte += step) {
#pragma unroll
      for (int stage = 0; stage < stages; ++stage)
        ptx::st_shared_v4(ptx::cvta_shared(&operand[stage]) + byte, zeros);
    }
    ptx::fence_proxy_async();
  }

  __device__ Tiles all_tiles() const {
    if constexpr (has_parts)
      return {params_.order, params_.split, params_.k_blocks, cluster_size};
    else
      return {params_.order, cluster_size};
  }

  /// Of a tile, what this block multiplies.
  __device__ unsigned k_blocks_of(const Tiles& tiles) const {
    if constexpr (has_parts)
      return tiles.share().k_blocks;
    else
      return params_.k_blocks;
  }
  __device__ static unsigned first_k_block_of(const Tiles& tiles) {
    if constexpr (has_parts)
      return tiles.share().first_k_block;
    else
      return 0;
  }

  /// The share of k that this block multiplies.
  __device__ unsigned split_rank() const { return splits_k ? rank_ : 0; }

  __device__ unsigned rows_left(const OutputPlace& place) const {
    return place.row < params_.m ? params_.m - place.row : 0;
  }

  /// Where a consumer's part of a tile begins.
  struct Share {
    unsigned row;
    unsigned column;
  };

  __device__ static Share share_of(unsigned consumer) {
    if constexpr (takes_turns) return {.row = 0, .column = 0};
    if constexpr (abi::splits_columns(design))
      return {.row = 0, .column = consumer * columns_per_consumer};
    return {.row = consumer * rows_per_consumer, .column = 0};
  }

  /// This block's tile among those of the cluster.
  __device__ OutputPlace place_of(const abi::TilePosition& tile) const {
    const unsigned row = tile.row * design.cluster_m + (design.cluster_m > 1 ? rank_ : 0);
    const unsigned column = tile.column * design.cluster_n + (design.cluster_n > 1 ? rank_ : 0);
    return {.row = row * design.tile_m, .column = column * design.tile_n, .batch = tile.batch};
  }

  /// What this block's consumer stores of it.
  __device__ OutputPlace place_of(const abi::TilePosition& tile, const Share& share) const {
    OutputPlace place = place_of(tile);
    place.row += share.row;
    place.column += share.column + split_rank() * stored.tile_n;
    return place;
  }

  __device__ __forceinline__ void load_stage(unsigned stage, const OutputPlace& place, int k,
                                             unsigned barrier) const {
    load_operand<a_operand>(ptx::cvta_shared(&shared_.a[stage]), params_.a,
                            {.extent = static_cast<int>(place.row),
                             .k = k,
                             .batch = static_cast<int>(place.batch * params_.a_batch_step)},
                            barrier, rank_);
    load_operand<b_operand>(ptx::cvta_shared(&shared_.b[stage]), params_.b,
                            {.extent = static_cast<int>(place.column),
                             .k = k,
                             .batch = static_cast<int>(place.batch * params_.b_batch_step)},
                            barrier, rank_);
  }

  /// True if accumulator registers are freed while the epilogue reads them. The compiler keeps all
  /// of them alive until a wgmma that does not read them; so the first stage is multiplied apart
  /// from the loop, by wgmmas that begin at zero. Beside 192 live accumulators a program had
  /// registers for two chains of arithmetic only and took a third longer (bias + gelu 32 clocks an
  /// element, now 23: docs/performance.md). If registers are free anyway, the additional code gains
  /// nothing. In rotation two warpgroups are in their epilogues at a time and fill each other's
  /// stalls; a dense program in few chains does not slow the wgmmas down, in many chains by a
  /// fifth.
  template <class Finish>
  __device__ static constexpr bool frees_sums() {
    if constexpr (!Finish::reads_early || abi::has_room_beside_sums(design)) {
      return false;
    } else {
      return design.schedule != abi::Schedule::rotation || !Finish::is_dense;
    }
  }

  /// Multiplies a tile when this consumer's turn has come, and passes the turn on.
  template <class Finish>
  __device__ __forceinline__ Stage multiply_in_turn(const Tiles& tiles, Cursor& cursor,
                                                    Finish& finish, unsigned consumer,
                                                    Sums& sums) const {
    if (takes_turns && !tiles.is_first()) wait_for_turn(consumer);
    const Stage last =
        multiply_tile<frees_sums<Finish>()>(cursor, consumer, k_blocks_of(tiles), sums);
    if constexpr (Finish::adds_vector) {
      const auto& addend = finish.wait_for_addend();
      add_to_all_rows<design>(addend.ones(), addend.vector());
    }
    if (takes_turns && !tiles.is_last()) pass_turn<turns>(consumer);
    return last;
  }

  /// The mainloop. A stage is released one step late: then the wgmmas that read it have completed,
  /// while those of the next stage are in flight. Returns the last stage, which is not released.
  template <bool begins_apart>
  __device__ __forceinline__ Stage multiply_tile(Cursor& cursor, unsigned consumer,
                                                 unsigned k_blocks, Sums& sums) const {
    if constexpr (abi::is_promoted(design))
      return multiply_promoted(cursor, consumer, k_blocks, sums);
    Stage previous;
    const Share share = share_of(consumer);
    const auto multiply_next = [&](bool keeps_sums) {
      const Stage stage = wait_for_stage(cursor, consumer);
      const MatrixDescriptor a = a_of(cursor.stage, share.row);
      const MatrixDescriptor b = b_of(cursor.stage, share.column);
      multiply_stage<design>(a, b, keeps_sums);
      cursor.advance();
      return stage;
    };
    if constexpr (begins_apart) previous = multiply_next(false);
#pragma unroll 1
    for (unsigned k_block = begins_apart ? 1 : 0; k_block < k_blocks; ++k_block) {
      const bool is_later = begins_apart || k_block > 0;
      const Stage stage = multiply_next(is_later);
      ptx::wgmma_wait_group<1>();
      if (is_later) ring_.release(previous, lane());
      previous = stage;
    }
    return previous;
  }

  /// The same, where the products of each stage are added to accumulators that are values: while
  /// one consumer adds, the tensor cores multiply for another.
  __device__ __forceinline__ Stage multiply_promoted(Cursor& cursor, unsigned consumer,
                                                     unsigned k_blocks, Sums& sums) const {
    const Share share = share_of(consumer);
    Stage stage = wait_for_stage(cursor, consumer);
#pragma unroll 1
    for (unsigned k_block = 0; k_block < k_blocks; ++k_block) {
      multiply_stage<design>(a_of(cursor.stage, share.row), b_of(cursor.stage, share.column),
                             false);
      cursor.advance();
      Stage next = stage;
      const bool is_last = k_block + 1 == k_blocks;
      if (!is_last) next = wait_for_stage(cursor, consumer);
      ptx::wgmma_wait_group<0>();
      if (!is_last) ring_.release(stage, lane());
      if (k_block == 0)
        sums.take();
      else
        sums.add();
      stage = next;
    }
    return stage;
  }

  static constexpr bool transposes_a = abi::is_transposed(design.a, design.a_major);
  static constexpr bool transposes_b = abi::is_transposed(design.b, design.b_major);

  /// Waits until a stage has come, and makes it what wgmma takes.
  __device__ __forceinline__ Stage wait_for_stage(const Cursor& cursor, unsigned consumer) const {
    const Stage stage = ring_.wait_for_stage(cursor);
    if constexpr (transposes_a || transposes_b) transpose_stage(cursor.stage, consumer);
    return stage;
  }

  /// The warps of the tile's consumers share the atoms; wgmmas of the stage before are in flight
  /// meanwhile. The barrier holds until all atoms are written.
  __device__ __forceinline__ void transpose_stage(unsigned stage, unsigned consumer) const {
    using Transposer = AtomTransposer<abi::bytes_of(design.a)>;
    constexpr unsigned atom_bytes = abi::atom_extent(design) * abi::sm90_swizzle_bytes;
    constexpr int a_atoms = transposes_a ? sizeof shared_.a[0] / atom_bytes : 0;
    constexpr int b_atoms = transposes_b ? sizeof shared_.b[0] / atom_bytes : 0;
    constexpr unsigned warps = abi::consumers_per_tile(design) * abi::warps_per_consumer;
    constexpr unsigned first_barrier = 11;  // those of turns come before
    const unsigned a = ptx::cvta_shared(&shared_.a[stage]);
    const unsigned b = ptx::cvta_shared(&shared_.b[stage]);
    const unsigned own = takes_turns ? 0 : consumer * abi::warps_per_consumer;
    const unsigned warp = ptx::same_in_warp(own + threadIdx.x % abi::warpgroup_threads / 32);
    const Transposer transposer(lane());
#pragma unroll 1
    for (unsigned part = warp; part < (a_atoms + b_atoms) * Transposer::parts; part += warps) {
      const int atom = static_cast<int>(part / Transposer::parts);
      const unsigned at =
          atom < a_atoms ? a + atom * atom_bytes : b + (atom - a_atoms) * atom_bytes;
      transposer.take(at, part % Transposer::parts);
    }
    ptx::fence_proxy_async();
    ptx::bar_sync<warps * 32>(first_barrier + (takes_turns ? consumer : 0));
  }

  /// Stores a consumer's blocks of 64 rows from the index-th on, which has begun. The next one
  /// begins before this one is stored if its reads may come early.
  template <int index, class Results, class Finish, class Block>
  __device__ __forceinline__ static void store_blocks(WarpgroupStore<stored>& output,
                                                      const Results& sums, const OutputPlace& place,
                                                      Finish& finish, Block& block) {
    if constexpr (index + 1 < StoredSums::blocks) {
      OutputPlace next_place = place;
      next_place.row += abi::sm90_block_rows;
      if constexpr (Finish::reads_early) {
        auto next = finish.begin_block(next_place, index + 1);
        output.template store<index>(sums, place, block);
        store_blocks<index + 1>(output, sums, next_place, finish, next);
      } else {
        output.template store<index>(sums, place, block);
        auto next = finish.begin_block(next_place, index + 1);
        store_blocks<index + 1>(output, sums, next_place, finish, next);
      }
    } else {
      output.template store<index>(sums, place, block);
    }
  }

  /// What this consumer has of a tile, whose first block of rows has begun.
  template <class Results, class Finish, class Block>
  __device__ __forceinline__ static void store_tile(WarpgroupStore<stored>& output,
                                                    const Results& sums, const OutputPlace& place,
                                                    Finish& finish, Block& first) {
    store_blocks<0>(output, sums, place, finish, first);
    output.flush(place);
    finish.end_tile();
  }

  __device__ __forceinline__ void finish_sums(Sums& sums, const Stage& last_stage) const {
    ptx::wgmma_wait_group<0>();
    sums.fetch();
    ring_.release(last_stage, lane());
  }

  /// Sets accumulators beyond the edges of out to 0: a wgmma may have added a vector to them, which
  /// an infinity in A turns into NaN. Rare: at out's edges only.
  __device__ __forceinline__ void clear_beyond(Sums& sums, const OutputPlace& place) const {
    const int rows = static_cast<int>(params_.m) - static_cast<int>(place.row);
    const int columns = static_cast<int>(params_.n) - static_cast<int>(place.column);
    if (rows >= static_cast<int>(rows_per_consumer) &&
        columns >= static_cast<int>(columns_per_consumer))
      return;
    const unsigned warp = threadIdx.x % abi::warpgroup_threads / 32;
    sums.clear_beyond(rows - static_cast<int>(warp * abi::sm90_warp_rows + lane() / 4),
                      columns - static_cast<int>(lane() % 4 * 2));
  }

  __device__ static unsigned lane() { return threadIdx.x % 32; }

  __device__ __forceinline__ MatrixDescriptor a_of(unsigned stage, unsigned first_row) const {
    return describe_matrix<sizeof shared_.a[0]>(
        ptx::cvta_shared(&shared_.a) + first_row * abi::sm90_swizzle_bytes, stage);
  }
  /// `first_column` is 0, or begins a row of the K-major tile or an atom of the other.
  __device__ __forceinline__ MatrixDescriptor b_of(unsigned stage, unsigned first_column) const {
    return describe_matrix<sizeof shared_.b[0]>(
        ptx::cvta_shared(&shared_.b) + first_column * abi::sm90_swizzle_bytes, stage);
  }

  const abi::Sm90Params& params_;
  Shared& shared_;
  const Ring ring_;
  const unsigned rank_;
};

/// Both roles. `make_finish(shared address behind Sm90Shared, consumer, thread of the warpgroup)`
/// gives what computes out's values from accumulators. All threads call
/// `initialize_finish(that address)` before. A warp that is no consumer calls `open_results(lane)`
/// while the consumers multiply.
template <abi::Sm90Design design, class MakeFinish, class Initialize, class OpenResults>
__device__ __forceinline__ void run_sm90_gemm(const abi::Sm90Params& params,
                                              MakeFinish&& make_finish,
                                              Initialize&& initialize_finish,
                                              OpenResults&& open_results) {
  using Shared = Sm90Shared<design>;
  static_assert(abi::find_fault(design) == abi::Sm90Fault::none,
                "find_fault names the field of the design to change");
  static_assert(sizeof(Shared) + design.program_bytes == abi::shared_bytes(design));
  extern __shared__ __align__(1024) char shared[];
  const Sm90Gemm<design> gemm(params, *reinterpret_cast<Shared*>(shared));
  const unsigned behind = ptx::cvta_shared(shared) + sizeof(Shared);
  const unsigned warpgroup = ptx::same_in_warp(threadIdx.x / abi::warpgroup_threads);
  constexpr abi::RegisterBudget registers = abi::register_budget(design);
  WgmmaSums<design>::declare();
  gemm.prepare([&] { initialize_finish(behind); });
  if (warpgroup == 0) {
    if constexpr (registers.producer > 0) ptx::setmaxnreg_dec<registers.producer>();
    gemm.produce();
    if (ptx::same_in_warp(threadIdx.x / 32) == 1) open_results(threadIdx.x % 32);
  } else {
    if constexpr (registers.consumer > 0) ptx::setmaxnreg_inc<registers.consumer>();
    const unsigned consumer = warpgroup - 1;
    const unsigned thread = threadIdx.x % abi::warpgroup_threads;
    if constexpr (design.split == abi::SplitMode::none)
      gemm.consume(consumer, make_finish(behind, consumer, thread));
    else
      gemm.consume_shares(consumer, make_finish(behind, consumer, thread));
  }
  gemm.leave();
}

/// The kernel: abi::thread_count(design) threads and abi::shared_bytes(design) dynamic shared bytes
/// per block, a grid of any number of clusters along x.
template <abi::Sm90Design design>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90Params& params) {
  run_sm90_gemm<design>(
      params,
      [&](unsigned, unsigned, unsigned thread) {
        return WarpgroupLinearCombination<abi::stored_design(design)>(params, thread);
      },
      [](unsigned) {}, [](unsigned) {});
}

}  // namespace gemmery::device
