// SPDX-License-Identifier: Apache-2.0
// The PTX that the source of an sm90 kernel defines for the device headers: one instruction or one
// sequence of many, of which a kernel needs one. It spares the compiler the choice.
#pragma once

#include <string>

#include "device/abi/sm90_design.hpp"

namespace gemmery::templates {

// GEMMERY_WGMMA, or GEMMERY_WGMMA_BY_REGISTERS, for the accumulators of one block of rows
// (device/ptx/wgmma.cuh).
std::string wgmma_text(const abi::Sm90Design& design);

// GEMMERY_RESULTS and its operands (device/ptx/results.cuh); empty for designs whose results are
// not stated (abi::states_results).
std::string results_text(const abi::Sm90Design& design);

}  // namespace gemmery::templates
