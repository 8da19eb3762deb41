// SPDX-License-Identifier: Apache-2.0
// A ring of stages in shared memory between one thread that fills them by copies and warps that
// empty them. Each stage has two mbarriers:
//
//   full    the producer arrives once and expects the bytes of its copies. These bytes, and the
//           arrivals of other threads that fill parts of the stage, complete the phase
//   empty   every consumer warp arrives, of every block from which the stage's copies are multicast
#pragma once

#include <device/abi/host_device.hpp>
#include <device/pipeline/phase.cuh>
#include <device/ptx/cluster.cuh>
#include <device/ptx/mbarrier.cuh>

namespace gemmery::device {

/// A role's position in the ring; the producer and each consumer keep one.
template <int stages>
struct StageCursor {
  unsigned stage = 0;
  unsigned phase = 0;  // parity of the round

  __device__ __forceinline__ void advance() {
    if (++stage == stages) {
      stage = 0;
      phase ^= 1U;
    }
  }

  /// Skips stages that another consumer takes.
  __device__ __forceinline__ void advance_by(unsigned count) {
    const unsigned position = stage + count;
    stage = position % stages;
    phase ^= position / stages & 1U;
  }
};

template <int stages>
struct StageBarriers {
  abi::UInt64 full[stages];
  abi::UInt64 empty[stages];
};

/// `sharing_blocks`: blocks of a cluster that load operands for each other; their ranks are
/// consecutive from 0.
template <int stages, int sharing_blocks>
class StageRing {
 public:
  using Cursor = StageCursor<stages>;

  /// `barriers`: the shared address of StageBarriers<stages>.
  __device__ explicit StageRing(unsigned barriers) : full_(barriers) {}

  /// Called by one thread, before a barrier of the whole cluster. `other_fillers`: the number of
  /// threads besides the producer that arrive when their copies are done.
  __device__ void initialize(unsigned consumer_warps, unsigned other_fillers = 0) const {
    for (unsigned stage = 0; stage < stages; ++stage) {
      ptx::mbarrier_init(full(stage), 1 + other_fillers);
      ptx::mbarrier_init(empty(stage), consumer_warps * sharing_blocks);
    }
  }

  /// Producer: waits until every consumer has released the stage's previous contents, and arms it
  /// for `bytes`. Returns the barrier for the copies.
  __device__ __forceinline__ unsigned acquire(const Cursor& cursor, unsigned bytes) const {
    wait_for_release(cursor);
    ptx::mbarrier_arrive_expect_tx(full(cursor.stage), bytes);
    return full(cursor.stage);
  }

  /// For a producer that fills a stage by stores: waits until every consumer has released the
  /// stage's previous contents.
  __device__ __forceinline__ void wait_for_release(const Cursor& cursor) const {
    wait_for_phase(empty(cursor.stage), cursor.phase ^ 1U);
  }
  __device__ __forceinline__ void publish(const Cursor& cursor) const {
    ptx::mbarrier_arrive(full(cursor.stage));
  }

  /// The barrier at which other fillers arrive.
  __device__ __forceinline__ unsigned barrier_of(const Cursor& cursor) const {
    return full(cursor.stage);
  }

  /// A filled stage, identified by the address of its barrier, so that no index must be kept.
  struct Filled {
    unsigned full = 0;
  };

  /// Consumer: waits until the stage's bytes have arrived.
  __device__ __forceinline__ Filled wait_for_stage(const Cursor& cursor) const {
    wait_for_phase(full(cursor.stage), cursor.phase);
    return {full(cursor.stage)};
  }

  /// Consumer warp: releases a stage. Called by all lanes.
  __device__ __forceinline__ static void release(const Filled& stage, unsigned lane) {
    const unsigned empty = stage.full + stages * 8;
    if constexpr (sharing_blocks == 1) {
      if (lane == 0) ptx::mbarrier_arrive(empty);
    } else {
      if (lane < sharing_blocks) ptx::mbarrier_arrive_cluster(ptx::mapa(empty, lane));
    }
  }

 private:
  __device__ unsigned full(unsigned stage) const { return full_ + stage * 8; }
  __device__ unsigned empty(unsigned stage) const { return full_ + (stages + stage) * 8; }

  unsigned full_;
};

}  // namespace gemmery::device
