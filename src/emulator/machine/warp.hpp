// SPDX-License-Identifier: Apache-2.0
// The state of execution: warps in CTAs in a cluster. One host thread runs a cluster.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "emulator/check/clock.hpp"
#include "emulator/check/fault.hpp"
#include "emulator/check/fence_state.hpp"
#include "emulator/machine/async_operations.hpp"
#include "emulator/machine/barriers.hpp"
#include "emulator/machine/call_stack.hpp"
#include "emulator/machine/execution_observer.hpp"
#include "emulator/machine/kernel_image.hpp"
#include "emulator/machine/remote_uses.hpp"
#include "emulator/machine/wgmma_state.hpp"
#include "emulator/memory/shared_memory.hpp"

namespace gemmery::emulator {

struct Cluster;
struct Cta;
struct Grid;

// Describes the event that a blocked fragment waits for; called only to report a deadlock.
// "mbarrier at shared 0x400 (CTA 0): phase parity 1; pending 3 of 8 arrivals, 16384 bytes to come"
class Warp;
struct Fragment;
using DescribeWait = std::string (*)(const Warp& warp, const Fragment& fragment);

// Lanes of a warp that are at one instruction. Most of the time a warp is one fragment.
struct Fragment {
  std::uint32_t pc = 0;
  LaneMask lanes = 0;
  bool is_blocked = false;      // its last step was Step::blocked, or it waits for other lanes
  bool was_blocked = false;     // has been blocked at this operation
  bool waits_for_warp = false;  // waits for other lanes, at an operation that needs_convergence
  bool may_time_out = false;    // Warp::may_time_out as the operation left it
  bool has_timed_out = false;   // Warp::has_timed_out for its next try
  DescribeWait describe_wait = nullptr;  // Warp::describe_wait as the operation left it
  // State that a blocked operation keeps between its tries (0 at first): its arrival, or the phase
  // that it waits for. Cleared by the machine when the operation succeeds.
  std::uint64_t resume = 0;
};

class Warp {
 public:
  Warp(Cta& cta, std::uint32_t index);
  // Resets it for the next cluster in the same storage.
  void reset();

  // --- values --------------------------------------------------------------------------------
  template <class T>
  const T* source(const Operation& operation, std::size_t slot) const noexcept {
    const OperandSlot& at = operation.slot[slot];
    return reinterpret_cast<const T*>((at.is_constant ? constants : registers) + at.offset);
  }
  template <class T>
  T* destination(const Operation& operation, std::size_t slot) noexcept {
    return reinterpret_cast<T*>(registers + operation.slot[slot].offset);
  }
  LaneMask defined_lanes(const OperandSlot& slot) const noexcept {
    return slot.reg == no_register ? all_lanes : defined[slot.reg];
  }
  void set_defined(const OperandSlot& slot, LaneMask active, LaneMask is_defined) noexcept {
    LaneMask& mask = defined[slot.reg];
    mask = (mask & ~active) | (is_defined & active);
  }
  // Throws Fault (unwritten_register), which names the register, if an active lane is undefined:
  // for addresses, branch predicates, barrier ids, descriptors. If a handler takes the fault, the
  // value is used and counts as defined.
  void require_defined(const OperandSlot& slot, LaneMask active, const char* what) const;

  std::byte* registers = nullptr;        // 64-byte aligned
  const std::byte* constants = nullptr;  // likewise
  std::vector<LaneMask> defined;         // by register index

  // --- where it is -----------------------------------------------------------------------------
  Cta& cta;
  const std::uint32_t index;             // in the CTA
  LaneMask existing = 0;                 // lanes that are threads of the block
  LaneMask live = 0;                     // of these, the lanes that have not exited
  std::vector<Fragment> fragments;       // at different pcs, unless within a blocked operation
  Fragment* running = nullptr;           // the one whose operation executes
  DescribeWait describe_wait = nullptr;  // set with Step::blocked
  // Set if a blocked operation may return false (mbarrier.try_wait) once nothing else in the
  // cluster can proceed.
  bool may_time_out = false;
  bool has_timed_out = false;  // set by the machine before it runs the operation again
  // For operations that return Step::jumped: sends lanes to the target of a branch, call or return,
  // or makes them exit. Other lanes continue with the next instruction.
  void send(LaneMask which, std::uint32_t pc);
  void exit(LaneMask which);
  struct Placement {
    LaneMask lanes;
    std::uint32_t pc;
  };
  std::vector<Placement> sent;  // lanes that the running operation has sent

  // --- the machine's own bookkeeping ------------------------------------------------------------
  std::uint64_t tried_at_wakes = 0;  // Cluster::wakes when all its fragments were found blocked

  // --- order -----------------------------------------------------------------------------------
  AgentIndex agent = 0;
  std::uint32_t clock = 1;  // incremented by each release
  Knowledge known;          // `happened` holds the own clock too
  // Lanes with generic writes since `synchronised_clock` that no fence.proxy.async of that lane
  // covers yet; every store records its lanes. Older writes are covered by any lane's fence.
  LaneMask unfenced_lanes = 0;
  std::uint32_t synchronised_clock = 0;  // events of lanes up to it are ordered with each other
  // The present access of this warp's lanes. `lane` is filled in by per-lane checks.
  Accessor accessor(const Operation& operation, int lane = 0) const noexcept;
  // Adds all events so far to `to`, for later acquires; starts a new epoch.
  void release(Knowledge& to);
  void acquire(const Knowledge& from) { known.join(from); }
  FenceState fence;  // fences with memory: instruction/fence.cpp, instruction/memory_order.cpp
  // Orders the lanes of this warp with each other (bar.warp.sync and everything that includes it).
  void synchronise_lanes() noexcept;

  // --- by concern; each belongs to the files named there -----------------------------------------
  WgmmaState wgmma;                          // instruction/wgmma.cpp
  std::array<BulkGroups, 32> bulk;           // one for each lane; instruction/bulk_copy.cpp
  WarpCopies cp_async;                       // instruction/cp_async.cpp
  std::vector<std::byte> local_memory;       // local_bytes for each lane, lane after lane
  std::vector<std::uint64_t> local_written;  // a bit per byte of local_memory
  // One for each lane, or none; instruction/control/call_frame.cpp.
  std::vector<CallStack> call_stacks;
  std::uint32_t register_quota = 0;  // setmaxnreg
  LaneMask carry = 0;                // CC.CF; instruction/integer_carry.cpp

 private:
  AlignedBytes storage_;
};

struct Cta {
  Cta(Cluster& cluster, std::uint32_t rank);
  void reset();  // initial state, at the cluster's position in the grid

  Cluster& cluster;
  std::array<std::uint32_t, 3> position{};  // %ctaid
  const std::uint32_t rank;                 // %cluster_ctarank
  SharedMemory shared;
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<NamedBarrier, 16> named_barriers;  // instruction/barrier.cpp
  std::map<std::uint32_t, Mbarrier> mbarriers;  // by shared offset; instruction/mbarrier.cpp
  RegisterPool registers;                       // instruction/register_quota.cpp
  RemoteUses remote_uses;                       // by other CTAs of the cluster
  std::uint32_t live_warps = 0;
  bool has_left = false;  // all its warps have exited
  // The image's constants for this rank (KernelImage::shared_constants).
  const std::byte* constants() const noexcept;

 private:
  AlignedBytes own_constants_;  // empty if they are equal to the image's
};

struct Cluster {
  Cluster(Grid& grid, std::uint32_t index, std::uint64_t seed);
  // Resets it for another cluster of the grid; keeps the storage.
  void reset(std::uint32_t index, std::uint64_t seed);

  Grid& grid;
  std::uint32_t index;                     // linear in the grid
  std::vector<std::unique_ptr<Cta>> ctas;  // by rank
  ClusterBarrier barrier;                  // instruction/barrier.cpp
  std::mt19937_64 random;                  // the schedule; seeded by launch seed and cluster index
  AsyncQueue async;                        // machine/async_operations.hpp
  std::uint64_t progress = 0;              // side effects so far
  std::uint64_t wakes = 0;                 // those that may unblock an operation
  std::uint64_t steps = 0;                 // warp instructions so far
  Warp* running = nullptr;                 // the warp of the present or last turn
  AgentIndex agent_count = 0;
  // A new agent (an mbarrier, a strand). Throws Fault (illegal_instruction) at max_agents.
  AgentIndex add_agent();
  Cta& cta(std::uint32_t rank) { return *ctas[rank]; }
  // The CTA and offset of a shared address. Throws Fault: out_of_bounds for a rank beyond the
  // cluster, early_exit for a CTA that has exited.
  struct SharedPlace {
    Cta* cta;
    std::uint32_t offset;
  };
  SharedPlace shared_place(std::uint32_t shared_address);

 private:
  void place(std::uint64_t seed);
};

// State shared by all clusters of a launch.
struct Grid {
  std::shared_ptr<const KernelImage> image;
  GlobalMemory* memory = nullptr;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t multiprocessors = 132;
  std::vector<std::byte> parameters;  // laid out by KernelImage::parameter_offset
  std::uint64_t seed = 0;
  std::uint64_t workspace = 0;            // of a cooperative launch; 0: it is none
  std::uint32_t launch_index = 0;         // %gridid
  ExecutionObserver* observer = nullptr;  // LaunchRequest::observer

  // Dynamic shared memory follows static shared memory, at the alignment of its declaration.
  std::uint32_t shared_bytes_per_cta() const noexcept;

  std::uint32_t threads_per_cta() const noexcept { return block[0] * block[1] * block[2]; }
  std::uint32_t ctas_per_cluster() const noexcept { return cluster[0] * cluster[1] * cluster[2]; }
  std::uint32_t warps_per_cta() const noexcept { return (threads_per_cta() + 31) / 32; }
};

}  // namespace gemmery::emulator
