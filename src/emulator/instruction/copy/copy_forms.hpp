// SPDX-License-Identifier: Apache-2.0
// The decoders behind `cp` and `st.async`: copy.cpp or memory.cpp finds the one, its file does the
// rest. What these have looked at ("async", "bulk", "reduce", …) is taken from the form already.
#pragma once

#include <string_view>

#include "emulator/instruction/form.hpp"

namespace gemmery::emulator {

// cp_async.cpp: cp.async.{ca,cg}, its groups and its mbarrier arrivals.
void decode_cp_async(Form& form);
// bulk_copy.cpp: cp{.reduce}.async.bulk without a tensor map.
void decode_bulk_copy(Form& form, bool is_reduction);
// async_store.cpp: st.async.
void decode_async_store(Form& form);
// bulk_group.cpp: cp.async.bulk.commit_group and wait_group.
void decode_bulk_commit(Form& form);
void decode_bulk_wait(Form& form);
// tensor_copy.cpp: cp{.reduce}.async.bulk{.prefetch}.tensor.
void decode_tensor_copy(Form& form, bool is_reduction, bool is_prefetch);
// tensor_map_change.cpp: tensormap.replace and tensormap.cp_fenceproxy.
void decode_tensor_map_change(Form& form);

// The reduction's word ("add", …), taken; refuses where there is none.
std::string_view take_reduction(Form& form);
// Takes .L2::cache_hint; its operand, which has no effect here, then is the last one.
bool take_cache_hint(Form& form);

}  // namespace gemmery::emulator
