// SPDX-License-Identifier: Apache-2.0
// How fast skinny kernels are on a problem: what discovery sorts by. Fitted to an H100's times
// (tests/model/designs_h100.csv); other devices' follow from their facts.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "providers/templates/skinny/design.hpp"

namespace gemmery::templates {

// Of one launch.
double predict_skinny_us(const SkinnyTile& tile, const OperandRules& rules,
                         const GemmProblem& problem, const DeviceInfo& device);

// Blocks that share a multiprocessor, by their shared memory, threads and registers.
int resident_blocks(const abi::SkinnyDesign& design, const DeviceInfo& device) noexcept;

// The tile and what splits of its k are worth a look on a device: powers of two, while there are
// split units for them, up to some blocks for every place that the device has for one.
std::vector<SkinnyTile> with_splits(const SkinnyTile& tile, const OperandRules& rules,
                                    const GemmProblem& problem, const DeviceInfo& device);

// Blocks of k of a tile: units in which it can be split, at least one.
unsigned skinny_k_blocks(const abi::SkinnyDesign& design, unsigned k) noexcept;

}  // namespace gemmery::templates
