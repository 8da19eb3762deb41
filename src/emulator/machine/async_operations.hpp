// SPDX-License-Identifier: Apache-2.0
// Operations that run concurrently with the warps of a cluster: bulk copies and cp.async, completed
// late and in any order that the seed gives, so that a missing wait shows.
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

// One operation in flight. `complete` does all of it: reads, writes, notes both in the shadows with
// the issuer's knowledge, signals barrier or group. Throws Fault; the machine adds the place from
// here.
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
  std::uint64_t next_due = ~std::uint64_t{0};  // the least of theirs
  std::uint16_t next_operation = 1;            // for Accessor::operation
  const AsyncOperation* completing = nullptr;  // at present
};

// Fills in fields that the thrower left empty.
void add_place(Fault& fault, const Cluster& cluster, const AsyncOperation& operation);

// Starts an operation of a warp's lane with a random delay.
void start_async(Warp& warp, std::uint8_t lane, std::uint32_t pc,
                 std::function<void(Cluster&)> complete);
// Completes operations that are due, in any order. `is_everything`: all pending ones.
void complete_due(Cluster& cluster, bool is_everything = false);
// For when nothing else can continue: completes the operation that is due first; false: there is
// none.
bool complete_next(Cluster& cluster);

// Bulk-async groups of one thread (cp.async.bulk.commit_group). Group g counts from 1; strands are
// agents: waiting for groups up to g raises their clocks to g.
struct BulkGroups {
  AgentIndex read_strand = ~AgentIndex{0};   // made on first use: reads of shared sources
  AgentIndex write_strand = ~AgentIndex{0};  // writes to global memory, and reads there
  std::uint32_t committed = 0;               // groups
  std::uint32_t open = 0;                    // operations not committed yet
  struct Group {
    std::uint32_t number;
    std::uint32_t unread;      // operations whose reads are not complete
    std::uint32_t unfinished;  // operations that are not complete
  };
  std::vector<Group> groups;  // not complete ones, the open one last
};

// cp.async copies that one lane began between two commits or arrivals: it waits for them together.
struct LaneCopies {
  std::uint32_t strand = 0;      // in WarpCopies::strands; of no meaning where there are no copies
  std::uint32_t clock = 0;       // of that strand; 0: no copies
  std::uint32_t unfinished = 0;  // in flight
  std::uint64_t number = 0;      // counts the lane's copies
  bool ends_group = false;       // committed; what an arrival alone ended goes on in the next
};

// A lane's copies that it has not waited for, newest last.
struct CopyGroups {
  std::vector<LaneCopies> copies;
  bool is_open = false;  // the next copy joins the newest of them
  std::uint64_t begun = 0;
};

// cp.async groups of a warp. Lanes that begin a group together share a strand and its clock, so
// that a kernel's 1024 threads do not need as many agents. Where lanes are apart they use strands
// of their own, for they wait each in their own order, and a strand can only be known up to what
// nobody still waits for: new groups join a strand only if the lanes that have not waited for its
// older ones are the same.
struct WarpCopies {
  struct Strand {
    AgentIndex agent = 0;
    std::uint32_t clock = 0;    // of the newest group
    std::uint32_t waiting = 0;  // lanes that have not waited for all of it
  };
  std::array<CopyGroups, 32> lanes;
  std::vector<Strand> strands;
};

}  // namespace gemmery::emulator
