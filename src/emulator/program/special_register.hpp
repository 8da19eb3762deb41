// SPDX-License-Identifier: Apache-2.0
// The special registers of PTX by name (PTX ISA, "Special Registers").
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gemmery::emulator {

enum class SpecialRegister : std::uint8_t {
  tid,
  ntid,
  ctaid,
  nctaid,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  clusterid,
  nclusterid,
  cluster_ctaid,
  cluster_nctaid,
  cluster_ctarank,
  cluster_nctarank,
  is_explicit_cluster,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock_hi,
  clock64,
  globaltimer,
  globaltimer_lo,
  globaltimer_hi,
  dynamic_smem_size,
  total_smem_size,
  aggr_smem_size,
  reserved_smem_offset_begin,
  reserved_smem_offset_end,
  reserved_smem_offset_cap,
  reserved_smem_offset,  // %reserved_smem_offset_<n>
  current_graph_exec,
  envreg,  // %envreg<n>
  pm,      // %pm<n>
};

struct SpecialRegisterName {
  SpecialRegister which = SpecialRegister::tid;
  std::uint8_t dimension = 0;  // 0 x, 1 y, 2 z, 3 w; for numbered registers the number
};

// "%tid.x"; nullopt if no special register has that name.
std::optional<SpecialRegisterName> find_special_register(std::string_view name) noexcept;

}  // namespace gemmery::emulator
