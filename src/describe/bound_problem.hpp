// SPDX-License-Identifier: Apache-2.0
// A described problem with its memory, as the arguments of a kernel.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/describe.hpp>

#include <optional>

#include "describe/steps.hpp"

namespace gemmery::describe {

// Views of rank 3.
struct ProblemViews {
  Tensor a;
  Tensor b;
  std::optional<Tensor> c;
  Tensor out;
};

// Whether a functor reads C with these numbers.
bool reads_source(const EpilogueFunctor& functor, const OutputOp& output_op,
                  const std::optional<Tensor>& c) noexcept;

// The arguments of a described kernel.
gemmery::GemmArguments bind_problem(const GemmDescription& description, const ProblemViews& views,
                                    const OutputOp& output_op);

// The step that computes them: by the operation's own kernel where it serves, else by one of the
// same design.
struct StepRequest {
  const Kernel& own;
  const GemmDescription& description;
  const ProblemViews& views;
  const OutputOp& output_op;
  bool is_bias = false;
  int serial_slices = 1;
  int parallel_slices = 1;
};
Step make_step(const StepRequest& request);

// The epilogue of an operation's own kernel: that of a large problem whose operands are aligned as
// described.
EpilogueId own_epilogue(const GemmDescription& description);

}  // namespace gemmery::describe
