// SPDX-License-Identifier: Apache-2.0
// The decoders that barrier_rows() joins: barriers, mbarriers, fences, register quotas.
#pragma once

#include "emulator/instruction/decode.hpp"

namespace gemmery::emulator {

void decode_bar(DecodeContext&, const Instruction&, Operation&);       // barrier.cpp: bar, barrier
void decode_mbarrier(DecodeContext&, const Instruction&, Operation&);  // mbarrier.cpp
void decode_fence(DecodeContext&, const Instruction&, Operation&);     // fence.cpp
void decode_membar(DecodeContext&, const Instruction&, Operation&);    // fence.cpp
void decode_setmaxnreg(DecodeContext&, const Instruction&, Operation&);  // register_quota.cpp
// barrier_warp.cpp and barrier_cluster.cpp decode forms of bar and barrier.
void decode_warp_barrier(DecodeContext&, const Instruction&, Operation&);
void decode_cluster_barrier(DecodeContext&, const Instruction&, Operation&);

}  // namespace gemmery::emulator
