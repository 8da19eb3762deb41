// SPDX-License-Identifier: Apache-2.0
// Instructions that compute or query addresses, and cache hints.
#pragma once

#include "emulator/instruction/decode.hpp"

namespace gemmery::emulator {

void decode_convert_address(DecodeContext&, const Instruction&, Operation&);  // cvta, cvta.to
void decode_is_space(DecodeContext&, const Instruction&, Operation&);         // isspacep
void decode_map_address(DecodeContext&, const Instruction&, Operation&);      // mapa
void decode_cta_rank_of(DecodeContext&, const Instruction&, Operation&);      // getctarank
// Without effect: prefetch, prefetchu, applypriority.
void decode_prefetch(DecodeContext&, const Instruction&, Operation&);
void decode_discard(DecodeContext&, const Instruction&, Operation&);
void decode_create_policy(DecodeContext&, const Instruction&, Operation&);

}  // namespace gemmery::emulator
