// SPDX-License-Identifier: Apache-2.0
// The requirements of a program in an sm90 kernel: inputs by TMA, registers, shared memory.
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

// An input that TMA loads: its index among the operands, and its view for TMA.
struct TmaInput {
  std::size_t operand;
  TmaView view;
};

std::vector<TmaInput> list_tma_inputs(const GemmProblem& problem, const OperandRules& rules,
                                      const abi::Sm90Design& design, const ProgramTensors& tensors);

// Why a tensor map cannot describe one of them, in words; empty if it can.
std::string find_misfit(const std::vector<TmaInput>& inputs, EpilogueId epilogue);

// Columns of the widest staging tile of out.
int widest_staging(const OperandRules& rules) noexcept;

// Refuses reductions of blocks that staging tiles of so many columns do not hold.
Status check_sm90_blocks(EpilogueId epilogue, bool is_turned, int staging_columns);

// Fits a problem's program into several designs, one after another; `rules` must fit the problem.
class ProgramFit {
 public:
  ProgramFit(const GemmProblem& problem, const OperandRules& rules);

  // The stages that fit beside the program's shared memory; 0 if fewer than two fit, registers do
  // not suffice, or TMA cannot load an input that it would have to load.
  int stages(const Sm90Candidate& candidate) const noexcept;

 private:
  // Values that depend only on the width of staging tiles.
  struct Width {
    int staging_columns;
    bool is_walked;         // TMA can load all inputs that it would have to
    bool has_blocks;        // they hold whole blocks of the program's reductions
    bool reads_by_threads;  // full tensors, not all of which TMA loads
    bool is_light;          // fits the registers that 192 accumulators leave
  };
  Width width_of(int staging_columns, const GemmProblem& problem, const OperandRules& rules) const;

  ProgramTensors tensors_;
  abi::DType operand_;
  bool has_row_pairs_;
  bool scatters_rows_;
  std::array<Width, 3> widths_;
};

}  // namespace gemmery::templates
