// SPDX-License-Identifier: Apache-2.0
// Descriptions of a warp's place, of its waits and of the other access of a conflict. Made only
// when a fault is reported.
#pragma once

#include <string>

#include "emulator/check/shadow.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// Fills in fields that the thrower left empty: kernel, CTA, warp, line. `pc`: of the faulty
// operation.
void add_place(Fault& fault, const Warp& warp, std::uint32_t pc);
// The same for a fault of the operation that is being executed or completed.
void add_place_of_running(Fault& fault, const Cluster& cluster);
// Fills in the other access, unless it is there already.
void add_other_side(ConflictFault& fault, const Cluster& cluster);
// "PTX line 88: bar.sync 1; kernel.cu:12"
std::string line_in_words(const KernelImage& image, std::uint32_t pc);
// "the write by CTA (1,0,0), warp 3, lane 4 at PTX line 88: st.shared…; kernel.cu:12"
std::string describe_other_side(const Conflict& conflict, const Cluster& cluster);

// One line for each fragment of each live warp: its place and what it waits for.
std::string describe_waits(const Cluster& cluster);

Fault deadlock_fault(const Cluster& cluster);
Fault timeout_fault(const Cluster& cluster, std::uint64_t step_limit);
// All fragments of the warp wait for one another at operations that need the whole warp, or for
// exited lanes.
Fault divergence_fault(const Warp& warp);
// The guard of such an operation is true for `active` of `lanes` only.
Fault guarded_divergence_fault(const Warp& warp, std::uint32_t pc, LaneMask lanes, LaneMask active);

}  // namespace gemmery::emulator
