// SPDX-License-Identifier: Apache-2.0
// A kernel around a few lines of PTX, with its parameter and indices in registers.
#pragma once

#include <string>

#include "ptx_runner.hpp"

namespace gemmery::emulator {

// Registers: %t thread, %l lane, %w warp, %c rank in the cluster; %a %b %d %e b32; %p %q
// predicates; %to the parameter, %at = %to + 4 * (thread + 256 * CTA) as addresses, %s b64. Shared:
// 1 KiB `data`, mbarriers at `bar` and `bar+8`.
inline std::string synchronisation_kernel(const std::string& body) {
  return R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry run(.param .u64 to) {
.reg .pred %p, %q; .reg .b32 %t, %l, %w, %c, %a, %b, %d, %e, %g; .reg .b64 %to, %at, %s, %n;
.shared .align 8 .b8 bar[16]; .shared .align 16 .b8 data[1024];
ld.param.u64 %to, [to];
mov.u32 %t, %tid.x; mov.u32 %l, %laneid; mov.u32 %c, %cluster_ctarank; mov.u32 %g, %ctaid.x;
shr.u32 %w, %t, 5;
mad.lo.u32 %a, %g, 256, %t;
mul.wide.u32 %at, %a, 4;
add.u64 %at, %to, %at;
)" + body +
         "\nret;\n}\n";
}

// Runs it and returns what the threads stored at %at.
struct SynchronisationRun {
  std::optional<Fault> fault;
  std::vector<std::uint32_t> values;
};
inline SynchronisationRun run_synchronisation(const std::string& body, std::uint32_t threads,
                                              std::uint32_t ctas = 1, std::uint64_t seed = 1) {
  PtxRunner runner(synchronisation_kernel(body));
  const std::uint64_t to = runner.put(std::vector<std::uint32_t>(256 * ctas));
  runner.request.grid = runner.request.cluster = {ctas, 1, 1};
  runner.request.block = {threads, 1, 1};
  runner.request.seed = seed;
  SynchronisationRun run;
  run.fault = runner.launch({to});
  run.values = runner.get<std::uint32_t>(to, 256 * ctas);
  return run;
}

// Checks the fault's kind, and that its report contains the words.
inline void expect_fault(const SynchronisationRun& run, FaultKind kind, const std::string& words) {
  ASSERT_TRUE(run.fault.has_value()) << "nothing was reported";
  EXPECT_EQ(name(run.fault->kind), std::string(name(kind))) << run.fault->report();
  EXPECT_NE(run.fault->report().find(words), std::string::npos) << run.fault->report();
}
inline void expect_no_fault(const SynchronisationRun& run) {
  if (run.fault) ADD_FAILURE() << run.fault->report();
}

}  // namespace gemmery::emulator
