// SPDX-License-Identifier: Apache-2.0
// GEMM on Hopper's tensor cores: out = alpha * a b + beta * c. The kernel with an emitted epilogue
// is in sm90_program.cuh, which kernels without one need not compile.
//
//   sizes of groups, or a list of problems, if there are any
//     | sm90_group_tiles, sm90_listed_tiles: one warp of warpgroup 0 finds the tiles and sends them
//     | to the others
//   A, B in global memory
//     | sm90_load, copy/tma_operand: one thread of warpgroup 0 loads tiles of 128 bytes of k by
//     | TMA, with zeros out of bounds; in a cluster each block multicasts half of a shared operand
//     | copy/conv_operand: images of a convolution in im2col mode, a tap of many pixels per copy
//     | sm90_gather: three more warps copy rows of A that are found by indices, by cp.async
//     | sm90_scales: or they load and decode scales of blocks of k
//   a[stage], b[stage] in shared memory, a ring with barriers (pipeline/stage_ring)
//     | sm90_transpose, copy/transposed_atom: transposes, in place, what wgmma takes only K-major;
//     | copy/register_operand: transposes A of 8 bits on its way to registers
//     | sm90_mainloop, mma/wgmma: each other warpgroup multiplies its rows or columns of the tile,
//     | or every second or third tile; one more wgmma may add a program's row vector
//   accumulators in registers
//     | pipeline/split_sums: if blocks of a cluster split k, each adds the accumulators of all of
//     | them for some of the tile's columns
//     | pipeline/join_parts, pipeline/warpgroup_parts: if blocks of the launch split k, one of them
//     | gets the accumulators of all through the workspace; if clusters do, one block for each
//     | block's columns
//     | sm90_finish, epilogue/warpgroup_combination: alpha, beta * c; or
//     | epilogue/warpgroup_program: a program, its further results and reductions
//     | epilogue/staging_writer: rounds values. Meanwhile the ring fills for the next tile
//   staging tiles in shared memory
//     | epilogue/warpgroup_store: TMA stores, clipped at edges; or stores by threads
//   out in global memory
//
// This file has the two roles of warpgroups and the order of the phases. sm90_places says which
// tiles and which k a block multiplies.
#pragma once

#include <device/abi/sm90_params.hpp>
#include <device/epilogue/warpgroup_combination.cuh>
#include <device/epilogue/warpgroup_store.cuh>
#include <device/gemm/sm90_finish.cuh>
#include <device/gemm/sm90_load.cuh>
#include <device/gemm/sm90_mainloop.cuh>
#include <device/gemm/sm90_phases.cuh>
#include <device/gemm/sm90_places.cuh>
#include <device/gemm/sm90_shared.cuh>
#include <device/pipeline/turns.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/cluster.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/grid_dependency.cuh>
#include <device/ptx/warp.cuh>

namespace gemmery::device {

/// If k is not split within a cluster, a block's accumulators are complete (pipeline/split_sums).
struct WholeSums {
  __device__ static void initialize(Nothing&) {}
  __device__ WholeSums(Nothing&, unsigned, unsigned, unsigned) {}
  template <class Sums>
  __device__ __forceinline__ const Sums& collect(const Sums& sums, unsigned) const {
    return sums;
  }
};

template <const abi::Sm90Design& design>
class Sm90Gemm {
 public:
  using Shared = Sm90Shared<design>;

  __device__ Sm90Gemm(const abi::Sm90Params& params, Shared& shared)
      : params_(params),
        shared_(shared),
        ring_(ptx::cvta_shared(&shared.barriers)),
        rank_(cluster_size == 1 ? 0 : ptx::cluster_ctarank()),
        places_(params, rank_),
        load_(params, shared, rank_),
        mainloop_(shared, ring_) {}

  /// Initialises the barriers in the whole cluster before any thread arrives at them. All this may
  /// overlap the end of the previous kernel; afterwards that kernel's writes are visible. Every
  /// thread waits for it, also those that access no global memory: then the end of this kernel
  /// implies the end of all kernels before it, on which a plain launch after it relies.
  template <class Initialize>
  __device__ void prepare(Initialize&& initialize_finish) const {
    initialize_finish();
    if (threadIdx.x == 0) {
      load_.prefetch_maps();
      if constexpr (abi::stores_by_tma(design) && !design.has_phases)
        ptx::prefetch_tensormap(params_.out);
      ring_.initialize(abi::consumers_per_tile(design) * abi::warps_per_consumer,
                       design.gathers_rows ? abi::gathering_threads : abi::scale_parts(design));
      TileSums::initialize(shared_.split_sums);
      if constexpr (design.has_groups) {
        GroupTileRing(ptx::cvta_shared(&shared_.group_tiles.barriers)).initialize(receiving_warps);
      }
      ptx::fence_mbarrier_init();
    }
    load_.clear_stages();
    sync_cluster();
    ptx::griddepcontrol_wait();
  }

  /// Loads the operands of all of the cluster's tiles, as far ahead as stages are free. Then lets
  /// the dependent kernel start, if the host allows it (otherwise it starts when blocks exit), so
  /// that its prologue overlaps our last stages. It waits in `prepare` until this kernel has ended.
  __device__ __forceinline__ void produce() const {
    if constexpr (design.has_groups)
      produce_groups();
    else
      produce_tiles();
  }

  /// A consumer warpgroup multiplies and stores its share of the cluster's tiles: part of each
  /// tile, or every second or third tile. `finish` computes the values of out from the
  /// accumulators.
  template <class Finish>
  __device__ __forceinline__ void consume(unsigned consumer, Finish finish) const {
    const auto share = Places::share_of(consumer);
    const unsigned thread = threadIdx.x % abi::warpgroup_threads;
    Store output(params_, ptx::cvta_shared(&shared_.staging), consumer, thread);
    TileSums tile_sums(shared_.split_sums, consumer, thread, rank_);
    Cursor cursor;
    Sums sums;
    Tiles tiles = all_tiles();
    const auto skip_tiles = [&](unsigned count) {
      cursor.advance_by(count * params_.k_blocks);
      tiles.advance_by(count);
    };
    const auto place_here = [&] { return places_.place_of(tiles.position(), share); };
    if constexpr (takes_turns) skip_tiles(consumer);
    OutputPlace place = place_here();
    if constexpr (Finish::adds_vector) {
      if (!tiles.is_done()) finish.bring_next_addend(place);
    }
#pragma unroll 1
    while (!tiles.is_done()) {
      if constexpr (!looks_ahead) place = place_here();  // not kept while wgmmas are in flight
      finish.begin_share(place);
      const Stage last_stage = multiply_in_turn(tiles, cursor, finish, consumer, sums);
      // Computes the next tile's place while wgmmas are still in flight, so that the tile can begin
      // as soon as this one is stored.
      if constexpr (looks_ahead) tiles.advance();
      if constexpr (takes_turns) skip_tiles(turns - 1);
      const OutputPlace next_place = place_here();  // this tile's place again without look-ahead
      if constexpr (Finish::adds_vector) {
        if (!tiles.is_done()) finish.bring_next_addend(next_place);
      }
      if constexpr (!Finish::reads_early) mainloop_.finish_sums(sums, last_stage);
      if constexpr (!looks_ahead) place = place_here();
      const bool has_output = finish.begin_tile(place);
      const auto complete = [&]() -> const auto& {
        if constexpr (Finish::reads_early) mainloop_.finish_sums(sums, last_stage);
        if constexpr (Finish::reduces_whole_tiles) Finishing::clear_beyond(params_, sums, place);
        return tile_sums.collect(sums, places_.rows_left(place));
      };
      if constexpr (Finishing::template begins_early<Finish>) {
        auto first = finish.begin_block(place, 0);
        const auto& results = complete();
        if (has_output) Finishing::store_tile(output, results, place, finish, first);
      } else {
        const auto& results = complete();
        if (has_output) Finishing::store_tile(output, results, place, finish);
      }
      if constexpr (looks_ahead) {
        place = next_place;
      } else {
        tiles.advance();
      }
    }
    finish.finish();
    output.finish();
  }

  /// The same if blocks split the k of tiles through the workspace. A warpgroup stores a tile only
  /// if it gets all accumulators of its share. Only then does it read the epilogue's inputs: before
  /// the mainloop if no other block has a part of the tile, otherwise after it.
  template <class Finish>
  __device__ __forceinline__ void consume_shares(unsigned consumer, Finish finish) const {
    const auto share = Places::share_of(consumer);
    const unsigned thread = threadIdx.x % abi::warpgroup_threads;
    Store output(params_, ptx::cvta_shared(&shared_.staging), consumer, thread);
    TileSums tile_sums(shared_.split_sums, consumer, thread, rank_);
    const WarpgroupParts<design> parts(params_, shared_.parts, consumer, thread, rank_);
    Cursor cursor;
    Sums sums;
    Tiles tiles = places_.all_tiles();
    const auto pass_shares = [&](unsigned count) {
      for (; count > 0 && !tiles.is_done(); --count) {
        cursor.advance_by(places_.k_blocks_of(tiles));
        tiles.advance();
      }
    };
    if constexpr (takes_turns) pass_shares(consumer);
#pragma unroll 1
    while (!tiles.is_done()) {
      const bool begins_early = parts.finishes_tile(tiles.share());
      if (begins_early) finish.begin_share(places_.place_of(tiles.position(), share));
      const Stage last_stage = multiply_in_turn(tiles, cursor, finish, consumer, sums);
      mainloop_.finish_sums(sums, last_stage);
      const OutputPlace place = places_.place_of(tiles.position(), share);
      const unsigned rows = places_.rows_left(place);
      auto& results = tile_sums.collect(sums, rows);
      if (parts.template join<PartTeam>(tiles.shares(), tiles.share(), rows, results)) {
        if (!begins_early) finish.begin_share(place);
        if (finish.begin_tile(place)) Finishing::store_tile(output, results, place, finish);
      }
      tiles.advance();
      if constexpr (takes_turns) pass_shares(turns - 1);
    }
    finish.finish();
    output.finish();
  }

  /// Waits, so that no block exits while arrivals of another block at its barriers are in flight.
  __device__ static void leave() {
    __syncwarp();
    if constexpr (cluster_size > 1) sync_cluster();
  }

 private:
  using Places = Sm90Places<design>;
  using Mainloop = Sm90Mainloop<design>;
  using Finishing = Sm90Finish<design>;
  using Ring = Sm90Ring<design>;
  using Cursor = typename Ring::Cursor;
  using Stage = typename Ring::Filled;
  using Tiles = typename Places::Tiles;
  using Sums = typename Mainloop::Sums;
  using Store = typename Finishing::Store;
  using StoredSums = typename Finishing::StoredSums;
  using TileSums =
      typename PhaseIf<(design.split_k > 1), SplitSums<design, Sums, StoredSums>, WholeSums>::Type;
  using PartTeam = typename PhaseIf<(design.split_k > 1), ValueTeam<design, StoredSums>,
                                    RegisterTeam<design>>::Type;
  using FoundTiles =
      typename PhaseIf<design.has_list, ListedTiles<design>, FoundGroupTiles<design>>::Type;
  static constexpr unsigned cluster_size = abi::cluster_size(design);
  /// True if a consumer computes the place of its next tile before it stores this one. Not if k is
  /// split: tiles are few then, and the place spilled with the accumulators of other blocks (ptxas
  /// 13.0).
  static constexpr bool looks_ahead = design.split_k == 1;
  static constexpr unsigned tile_k = abi::tile_k(design);
  /// The number of warps that receive the tiles of groups.
  static constexpr unsigned receiving_warps =
      abi::consumer_count(design) * abi::warps_per_consumer +
      (design.gathers_rows       ? abi::gathering_threads / 32
       : abi::has_scales(design) ? abi::scale_warps
                                 : 0);
  static constexpr unsigned turns = abi::turn_count(design);
  static constexpr bool takes_turns = abi::takes_turns(design);
  static_assert(looks_ahead || !takes_turns, "tiles are passed over before this one is stored");

  /// One thread loads all tiles.
  __device__ __forceinline__ void produce_tiles() const {
    if constexpr (abi::has_scales(design)) {
      if (threadIdx.x >= 32) return load_scales();
    }
    if (threadIdx.x != 0) return;
    Cursor cursor;
#pragma unroll 1
    for (Tiles tiles = places_.all_tiles(); !tiles.is_done(); tiles.advance()) {
      const auto tile = load_.find_tile(places_.place_of(tiles.position()));
      const int k = places_.first_k_of(tiles);
      const unsigned k_blocks = places_.k_blocks_of(tiles);
      load_tile(cursor, tile, k, k_blocks);
    }
    if (params_.lets_next_begin != 0) ptx::griddepcontrol_launch_dependents();
  }

  /// One warp finds the tiles of groups and sends them to the consumers; one of its lanes loads the
  /// operands.
  __device__ __forceinline__ void produce_groups() const {
    if (threadIdx.x >= 32) {
      if constexpr (design.gathers_rows) Sm90Gather<design>(params_, shared_, ring_).copy_tiles();
      if constexpr (abi::has_scales(design)) load_scales();
      return;
    }
    const bool loads = ptx::elect_sync();
    Cursor cursor;
    GroupTileSender<design> sender(shared_.group_tiles);
    FoundTiles tiles(params_);
#pragma unroll 1
    do {
      tiles.find_next();
      if (loads) {
        const OutputPlace place = tiles.position();
        sender.send(tiles.record(place));
        if (tiles.is_found())
          load_tile(cursor, load_.find_tile(place), tiles.first_k(), tiles.k_blocks());
      }
    } while (tiles.is_found());
    if (loads && params_.lets_next_begin != 0) ptx::griddepcontrol_launch_dependents();
  }

  /// Loads the scales of all of the block's tiles. The other warps of the producer call it.
  __device__ __forceinline__ void load_scales() const {
    Sm90ScaleLoad<design> scales(params_, shared_, ring_);
#pragma unroll 1
    for (Tiles tiles = all_tiles(); !tiles.is_done(); tiles.advance()) {
      const OutputPlace place = places_.place_of(tiles.position());
      scales.load_tile(place, places_.k_range_of(tiles, place), places_.k_blocks_of(tiles));
    }
  }

  /// Loads the operands of a tile. One thread calls it.
  __device__ __forceinline__ void load_tile(Cursor& cursor,
                                            const typename Sm90Load<design>::Tile& tile, int k,
                                            unsigned k_blocks) const {
#pragma unroll 1
    for (unsigned k_block = 0; k_block < k_blocks; ++k_block) {
      const unsigned barrier = ring_.acquire(cursor, bytes_by_tma());
      load_.load_stage(cursor.stage, tile, k + static_cast<int>(k_block * tile_k), barrier);
      cursor.advance();
    }
  }

  /// Bytes of a stage that TMA loads.
  __device__ unsigned bytes_by_tma() const {
    if constexpr (design.gathers_rows) return params_.b_bytes;
    return params_.a_bytes + params_.b_bytes;
  }

  __device__ __forceinline__ Tiles all_tiles() const {
    if constexpr (design.has_groups)
      return Tiles(shared_.group_tiles);
    else
      return places_.all_tiles();
  }

  __device__ static void sync_cluster() {
    if constexpr (cluster_size > 1) {
      ptx::barrier_cluster_arrive();
      ptx::barrier_cluster_wait();
    } else {
      __syncthreads();
    }
  }

  /// Multiplies a tile when this consumer's turn has come, and passes the turn on.
  template <class Finish>
  __device__ __forceinline__ Stage multiply_in_turn(const Tiles& tiles, Cursor& cursor,
                                                    Finish& finish, unsigned consumer,
                                                    Sums& sums) const {
    if (takes_turns && !tiles.is_first()) wait_for_turn(consumer);
    const Stage last = mainloop_.template multiply_tile<Finishing::template frees_sums<Finish>()>(
        cursor, consumer, places_.k_blocks_of(tiles), places_.depth_of(tiles), sums);
    if constexpr (Finish::adds_vector) {
      const auto& addend = finish.wait_for_addend();
      add_to_all_rows<design>(addend.ones(), addend.vector());
    }
    if (takes_turns && !tiles.is_last()) pass_turn<turns>(consumer);
    return last;
  }

  const abi::Sm90Params& params_;
  Shared& shared_;
  const Ring ring_;
  const unsigned rank_;
  const Places places_;
  const Sm90Load<design> load_;
  const Mainloop mainloop_;
};

/// Runs both roles. `make_finish(shared address after Sm90Shared, consumer, thread of the
/// warpgroup)` returns the `Finish` that computes the values of out from accumulators. Before that,
/// all threads call `initialize_finish(that address)`. A warp of the producer's warpgroup calls
/// `open_results(lane)` while the consumers multiply.
template <const abi::Sm90Design& design, class MakeFinish, class Initialize, class OpenResults>
__device__ __forceinline__ void run_sm90_gemm(const abi::Sm90Params& params,
                                              MakeFinish&& make_finish,
                                              Initialize&& initialize_finish,
                                              OpenResults&& open_results) {
  using Shared = Sm90Shared<design>;
  static_assert(sizeof(Shared) + design.program_bytes == abi::shared_bytes(design));
  extern __shared__ __align__(1024) char shared[];
  const Sm90Gemm<design> gemm(params, *reinterpret_cast<Shared*>(shared));
  const unsigned behind = ptx::cvta_shared(shared) + sizeof(Shared);
  const unsigned warpgroup = ptx::same_in_warp(threadIdx.x / abi::warpgroup_threads);
  constexpr abi::RegisterBudget registers = abi::register_budget(design);
  WgmmaSums<design>::declare();
  if constexpr (abi::totals_registers(design)) TotalSums<design>::declare();
  gemm.prepare([&] { initialize_finish(behind); });
  if (warpgroup == 0) {
    if constexpr (registers.producer > 0) ptx::setmaxnreg_dec<registers.producer>();
    gemm.produce();
    if constexpr (design.clears_outside) clear_outside_of_tiles<design>(params);
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
template <const abi::Sm90Design& design>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90Params& params) {
  run_sm90_gemm<design>(
      params,
      [&](unsigned, unsigned, unsigned thread) {
        return WarpgroupLinearCombination<abi::stored_of<design>()>(params, thread);
      },
      [](unsigned) {}, [](unsigned) {});
}

/// The same for groups, lists of problems and convolutions.
template <const abi::Sm90Design& design>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90GroupedParams& params) {
  static_assert(design.has_groups && !design.has_group_table && !design.has_list &&
                !design.scatters_rows && !design.gathers_rows);
  sm90_gemm<design>(params.gemm);
}
template <const abi::Sm90Design& design>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90GroupTableParams& params) {
  static_assert(design.has_groups && design.has_group_table);
  sm90_gemm<design>(params.grouped.gemm);
}
template <const abi::Sm90Design& design>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90ListParams<abi::ProblemList>& params) {
  static_assert(design.has_list && !design.has_c);
  sm90_gemm<design>(params.gemm);
}
template <const abi::Sm90Design& design>
__device__ __forceinline__ void sm90_gemm(
    const abi::Sm90ListParams<abi::ProblemListWithC>& params) {
  static_assert(design.has_list && design.has_c);
  sm90_gemm<design>(params.gemm);
}
template <const abi::Sm90Design& design>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90ConvParams& params) {
  static_assert(design.conv != abi::Sm90Conv::none && !design.has_phases);
  sm90_gemm<design>(params.gemm);
}
template <const abi::Sm90Design& design>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90PhaseParams& params) {
  static_assert(design.has_phases);
  sm90_gemm<design>(params.gemm);
}
template <const abi::Sm90Design& design>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90ScaledParams& params) {
  static_assert(abi::has_scales(design) && !design.has_groups);
  sm90_gemm<design>(params.gemm);
}
template <const abi::Sm90Design& design>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90ScaledGroupParams& params) {
  static_assert(abi::has_scales(design) && design.has_groups && !design.has_group_table);
  sm90_gemm<design>(params.grouped.gemm);
}
template <const abi::Sm90Design& design>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90ScatterParams& params) {
  static_assert(design.scatters_rows && !design.gathers_rows);
  sm90_gemm<design>(params.grouped.gemm);
}
template <const abi::Sm90Design& design>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90GatherParams& params) {
  static_assert(design.gathers_rows);
  sm90_gemm<design>(params.scattered.grouped.gemm);
}

}  // namespace gemmery::device
