// SPDX-License-Identifier: Apache-2.0
// An epilogue in a kernel's source, and its run-time parameters: operands, numbers, and the
// schedule and workspace of its reductions.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/epilogue.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/invariant.hpp"
#include "device/abi/epilogue.hpp"
#include "runtime/launch_plan.hpp"

namespace gemmery::templates {

// Refuses a program with reductions of blocks, by its node.
Status check_without_blocks(EpilogueId epilogue);
// A tile of out, and shared memory for a value of each of its blocks.
struct BlockSpace {
  int rows;
  int columns;
  int value_bytes;
  int shared_bytes;
};
// The same of those that threads cannot reduce in such tiles.
Status check_blocks(EpilogueId epilogue, const BlockSpace& space);
// A row of a tile that adjacent lanes hold, each a run of adjacent columns.
struct RowSpace {
  int columns;
  int run;
  bool is_turned;  // rows are out's columns
};
// Refuses reductions of blocks that are not of one such row, or not of whole runs.
Status check_row_blocks(EpilogueId epilogue, const RowSpace& space);
// Refuses reductions over no elements, for which nothing is launched that could write the result.
Status check_something_reduced(const GemmProblem& problem);
// Neither blocks nor reductions of nothing.
Status check_carried(const GemmProblem& problem);

// The tensors of a program in the order of its parameters, as a kernel sees them; empty for the
// default program.
struct ProgramTensors {
  std::vector<abi::EpilogueTensor> inputs;
  std::vector<abi::EpilogueTensor> outputs;  // without D
  std::vector<std::size_t> input_operands;   // the number of each input among the operands
  int addend = -1;  // the input that is added to the accumulators first (epilogue/addend.hpp)
};
ProgramTensors program_tensors(EpilogueId epilogue, bool is_turned);

// True if a result is a reduction.
bool has_reductions(EpilogueId epilogue);

// The text of an epilogue in a kernel's source.
struct EpilogueText {
  std::string comment;     // lines at the head of the source; may be empty
  std::string head;        // the emitted struct; empty for the default program
  std::string parameters;  // the type that the kernel takes
  std::string call;        // the device function with its template arguments
};

// `parameters` and `function` are those of the default program.
EpilogueText epilogue_text(const Kernel& kernel, bool is_turned, std::string_view parameters,
                           std::string_view function);

// Appends abi::EpilogueParams to the plan's parameters in the layout of abi::ProgramParams, and
// adds its workspace. `is_turned`: the kernel computes the transpose of out, and `regions` refer to
// what it computes.
void append_epilogue_parameters(const GemmArguments& arguments, EpilogueId epilogue, bool is_turned,
                                const abi::RegionGrid& regions, runtime::LaunchPlan& plan);

// Appends a member to the plan's parameters, at its alignment; returns its offset.
template <class Value>
std::size_t append_parameter(const Value& value, runtime::LaunchPlan& plan) {
  constexpr std::size_t unit = alignof(Value);
  const std::size_t at = (plan.parameter_size + unit - 1) / unit * unit;
  require(at + sizeof value <= runtime::LaunchPlan::parameter_capacity,
          "an epilogue's parameters do not fit a launch");
  std::memcpy(plan.parameter_bytes + at, &value, sizeof value);
  plan.parameter_size = at + sizeof value;
  return at;
}

}  // namespace gemmery::templates
