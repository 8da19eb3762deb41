// SPDX-License-Identifier: Apache-2.0
// A described problem with its operands in memory, as the arguments of a kernel.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/describe.hpp>

#include <optional>

#include "describe/steps.hpp"

namespace gemmery::describe {

// The operands of a product (views of rank 3) or of a convolution (of rank 4).
struct OperandViews {
  Tensor a;
  Tensor b;
  std::optional<Tensor> c;
  Tensor out;
};

// True if a functor reads C with these scalars.
bool reads_source(const EpilogueFunctor& functor, const OutputOp& output_op,
                  const std::optional<Tensor>& c) noexcept;

// The functor with these operands: C, scalars, or a program.
gemmery::GemmOptions bound_functor(const EpilogueFunctor& functor, const OperandViews& views,
                                   const OutputOp& output_op);

// The arguments of a described kernel.
gemmery::GemmArguments bind_problem(const GemmDescription& description, const OperandViews& views,
                                    const OutputOp& output_op);

// The step that computes a problem: by the operation's own kernel if it serves the problem, else by
// a kernel of the same design.
struct StepRequest {
  const Kernel& own;
  const GemmDescription& description;
  const OperandViews& views;
  const OutputOp& output_op;
  bool is_bias = false;
  int serial_slices = 1;
  int parallel_slices = 1;
};
Step make_step(const StepRequest& request);

// The epilogue of an operation's own kernel, which serves large problems whose operands have the
// described alignment.
EpilogueId own_epilogue(const GemmDescription& description);

}  // namespace gemmery::describe
