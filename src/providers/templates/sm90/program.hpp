// SPDX-License-Identifier: Apache-2.0
// What a program asks of an sm90 kernel: inputs that TMA brings, registers, shared memory.
#pragma once

#include <gemmery/epilogue.hpp>
#include <gemmery/problem.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/sm90/design.hpp"
#include "providers/templates/sm90/prediction.hpp"
#include "providers/templates/tma_view.hpp"

namespace gemmery::templates {

// An input that TMA brings: its number among the operands, and how TMA walks it.
struct TmaInput {
  std::size_t operand;
  TmaView view;
};

std::vector<TmaInput> list_tma_inputs(const GemmProblem& problem, const OperandRules& rules,
                                      const abi::Sm90Design& design, const ProgramTensors& tensors);

// What of them a tensor map cannot say, in words; empty where it can.
std::string find_misfit(const std::vector<TmaInput>& inputs, EpilogueId epilogue);

// Fits a problem's program into one design after another; `rules` must serve the problem.
class ProgramFit {
 public:
  ProgramFit(const GemmProblem& problem, const OperandRules& rules);

  // The stages that fit beside what the program takes; 0 where fewer than two do, registers do not
  // suffice, or TMA cannot walk what it would have to bring.
  int stages(const Sm90Candidate& candidate) const noexcept;

 private:
  // What follows from the width of staging tiles alone.
  struct Width {
    int staging_columns;
    bool is_walked;  // by TMA, all that it would have to bring
    bool is_light;   // does with the registers that 192 sums leave
  };
  Width width_of(int staging_columns, const GemmProblem& problem, const OperandRules& rules) const;

  ProgramTensors tensors_;
  abi::DType operand_;
  std::array<Width, 3> widths_;
};

}  // namespace gemmery::templates
