// SPDX-License-Identifier: Apache-2.0
// Operations that run concurrently with the warps of a cluster: bulk copies and cp.async. They
// complete late and in an order that depends on the seed, so that missing waits are found.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "emulator/check/clock.hpp"
#include "emulator/check/fault.hpp"

namespace gemmery::emulator {

struct Cluster;
class Warp;

// One operation in flight. `complete` does all its work: reads, writes, records both in the shadows
// with the issuer's knowledge, signals the barrier or group. It throws Fault; the machine adds the
// place from this struct.
struct AsyncOperation {
  std::function<void(Cluster&)> complete;
  std::uint64_t due = 0;  // in Cluster::steps; completed at or after, out of order
  std::uint32_t pc = 0;
  std::uint32_t cta_rank = 0;
  std::uint32_t warp = 0;
  std::uint8_t lane = 0;
};

struct AsyncQueue {
  std::vector<AsyncOperation> pending;
  std::uint64_t next_due = ~std::uint64_t{0};  // the least `due`
  std::uint16_t next_operation = 1;            // for Accessor::operation
  const AsyncOperation* completing = nullptr;  // the one that completes at present
};

// Fills in fields that the thrower left empty.
void add_place(Fault& fault, const Cluster& cluster, const AsyncOperation& operation);

// Starts an operation of a warp's lane with a random delay.
void start_async(Warp& warp, std::uint8_t lane, std::uint32_t pc,
                 std::function<void(Cluster&)> complete);
// Completes operations that are due, in a random order. `is_everything`: all pending ones.
void complete_due(Cluster& cluster, bool is_everything = false);
// Completes the operation that is due first, when nothing else can continue. False: there is none.
bool complete_next(Cluster& cluster);

// Bulk-async groups of one thread (cp.async.bulk.commit_group). Group g counts from 1; strands are
// agents: waiting for groups up to g raises their clocks to g.
struct BulkGroups {
  AgentIndex read_strand = no_agent;   // made on first use: reads of shared sources
  AgentIndex write_strand = no_agent;  // writes to global memory, and reads there
  std::uint32_t committed = 0;         // number of groups
  std::uint32_t open = 0;              // number of operations not committed yet
  struct Group {
    std::uint32_t number;
    std::uint32_t unread;      // operations whose reads are not complete
    std::uint32_t unfinished;  // operations that are not complete
  };
  std::vector<Group> groups;  // incomplete groups, the open one last
};

// The cp.async copies of a lane between two commits or arrivals; the lane waits for them together.
struct LaneCopies {
  std::uint32_t strand = 0;      // index into WarpCopies::strands; meaningless without copies
  std::uint32_t clock = 0;       // that strand's clock; 0: no copies
  std::uint32_t unfinished = 0;  // in flight
  std::uint64_t number = 0;      // counts the lane's copies
  bool ends_group = false;       // ended by a commit; after an arrival the group continues
};

// A lane's copies that it has not waited for, newest last.
struct CopyGroups {
  std::vector<LaneCopies> copies;
  bool is_open = false;  // the next copy joins the newest
  std::uint64_t begun = 0;
};

// cp.async groups of a warp. Lanes that begin a group together share a strand and its clock, so
// that 1024 threads do not need 1024 agents. Lanes that diverge use separate strands, because each
// waits in its own order, and the clock of a strand can be known only up to the groups for which no
// lane still waits. Therefore a new group joins a strand only if exactly its lanes have not waited
// for the strand's older groups.
struct WarpCopies {
  struct Strand {
    AgentIndex agent = 0;
    std::uint32_t clock = 0;    // the newest group's
    std::uint32_t waiting = 0;  // lanes that have not waited for all of it
  };
  std::array<CopyGroups, 32> lanes;
  std::vector<Strand> strands;
};

}  // namespace gemmery::emulator
