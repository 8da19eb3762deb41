// SPDX-License-Identifier: Apache-2.0
// The decoders of `cp` and `st.async`. copy.cpp or memory.cpp chooses one and has already taken the
// words that it looked at ("async", "bulk", "reduce", …) from the form.
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
// async_store.cpp: red.async.
void decode_async_reduction(Form& form);
// bulk_group.cpp: cp.async.bulk.commit_group and wait_group.
void decode_bulk_commit(Form& form);
void decode_bulk_wait(Form& form);
// tensor_copy.cpp: cp{.reduce}.async.bulk{.prefetch}.tensor.
void decode_tensor_copy(Form& form, bool is_reduction, bool is_prefetch);
// tensor_map_change.cpp: tensormap.replace and tensormap.cp_fenceproxy.
void decode_tensor_map_change(Form& form);

// Takes the reduction's word ("add", …); refuses the form if there is none.
std::string_view take_reduction(Form& form);
// Takes .L2::cache_hint. Its operand is the last one and has no effect here.
bool take_cache_hint(Form& form);

}  // namespace gemmery::emulator
