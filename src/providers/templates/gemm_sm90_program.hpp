// SPDX-License-Identifier: Apache-2.0
// What a program asks of an sm90 kernel: inputs that TMA brings, registers, shared memory.
#pragma once

#include <gemmery/epilogue.hpp>
#include <gemmery/problem.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/gemm_sm90_design.hpp"
#include "providers/templates/tma_view.hpp"

namespace gemmery::templates {

// An input that TMA brings: its number among the operands, and how TMA walks it.
struct SlabInput {
  std::size_t operand;
  TmaView view;
};

std::vector<SlabInput> list_slab_inputs(const GemmProblem& problem, const OperandRules& rules,
                                        const abi::Sm90Design& design,
                                        const ProgramTensors& tensors);

// What of them a tensor map cannot say, in words; empty where it can.
std::string find_misfit(const std::vector<SlabInput>& inputs, EpilogueId epilogue);

// The tile with the stages that fit beside what the program takes; none where that is too much, or
// TMA cannot walk what it would have to bring.
std::optional<Sm90Tile> fit_program(Sm90Tile tile, const GemmProblem& problem,
                                    const OperandRules& rules, const ProgramTensors& tensors);

}  // namespace gemmery::templates
