// SPDX-License-Identifier: Apache-2.0
// The predicted times of skinny kernels, by which discovery sorts. Fitted to times of an H100
// (tests/model/designs_h100.csv); for other devices they follow from their facts.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "providers/templates/skinny/design.hpp"

namespace gemmery::templates {

// The time of one launch.
double predict_skinny_us(const SkinnyTile& tile, const OperandRules& rules,
                         const GemmProblem& problem, const DeviceInfo& device);

// Blocks that fit on a multiprocessor, by their shared memory, threads and registers.
int resident_blocks(const abi::SkinnyDesign& design, const DeviceInfo& device) noexcept;

// The tile, without and with those splits of k that may be faster on a device: powers of two,
// limited by the split units and by a few blocks for each that is resident.
std::vector<SkinnyTile> with_splits(const SkinnyTile& tile, const OperandRules& rules,
                                    const GemmProblem& problem, const DeviceInfo& device);

// Blocks of k of a tile: units in which it can be split, at least one.
unsigned skinny_k_blocks(const abi::SkinnyDesign& design, unsigned k) noexcept;

}  // namespace gemmery::templates
