// SPDX-License-Identifier: Apache-2.0
// The second pass of a split k as a separate operation.
#include <fmt/format.h>

#include <utility>

#include "describe/description_check.hpp"
#include "describe/functor_program.hpp"
#include "describe/packed_operands.hpp"
#include "describe/partial_sums.hpp"
#include "describe/refusal.hpp"

namespace gemmery::describe {
namespace {

void check_reduction(const ReductionDescription& description) {
  if (description.C.layout != Layout::RowMajor)
    refuse_unsupported("C.layout", "RowMajor", std::string(name(description.C.layout)),
                       "a GemmSplitKParallel whose partial sums nobody asks for reduces into any "
                       "layout");
  check_alignment("C", description.C);
  if (description.epilogue_functor.kind == EpilogueFunctor::Kind::visitor)
    refuse_unsupported("epilogue_functor", "one of the four functors", "EpilogueVisitTree");
  check_functor(description.epilogue_functor, description.element_accumulator, description.C);
  if (description.count != description.C.alignment)
    refuse("count", fmt::format("{}, the alignment of C", description.C.alignment),
           std::to_string(description.count));
}

}  // namespace

struct ReductionArguments::State {
  ReductionDescription description;
  std::vector<Step> steps = {};
  std::vector<Buffer> scratch = {};
};

ReductionOperation::ReductionOperation(ReductionDescription description) {
  check_reduction(description);
  description_ = std::make_shared<const ReductionDescription>(std::move(description));
}

OutputOp ReductionOperation::epilogue_type(double alpha, double beta,
                                           std::vector<double> activation_args) const {
  return make_output_op(description_->epilogue_functor, alpha, beta, std::move(activation_args));
}

void ReductionOperation::run(const ReductionArguments& arguments, Stream stream) const {
  if (!(arguments.state()->description == *description_))
    refuse("arguments", "arguments of this operation", "those of another one");
  run_steps(arguments.state()->steps, stream);
}

ReductionArguments::ReductionArguments(const ReductionOperation& operation,
                                       const Partials& workspace, void* destination,
                                       const void* source, const OutputOp& output_op, bool bias) {
  const ReductionDescription& description = operation.description();
  const DType accumulator = storage_type(description.element_accumulator);
  if (workspace.dtype != accumulator)
    refuse("workspace", fmt::format("partial sums of {}", gemmery::name(accumulator)),
           std::string(gemmery::name(workspace.dtype)));
  if (workspace.data == nullptr || workspace.slices < 1)
    refuse("workspace", "the partial sums of a GemmSplitKParallel", "none");
  packed_bytes("workspace", {workspace.slices, workspace.rows, workspace.columns}, accumulator);
  if (source == nullptr && output_op.beta != 0)
    refuse("source", "memory, since beta is not 0", "a null pointer");
  check_output_op(description.epilogue_functor, output_op);
  const DType dtype = storage_type(description.C.element);
  const MatrixShape shape{workspace.rows, workspace.columns};
  std::optional<Tensor> c;
  if (source != nullptr)
    c = bias ? bias_view(source, dtype, shape, 1, workspace.device)
             : packed_view(source, dtype, Layout::RowMajor, shape, 1, workspace.device);
  auto state = std::make_shared<State>(State{.description = description});
  state->steps = sum_partials(
      {.partials = workspace,
       .functor = description.epilogue_functor,
       .output_op = output_op,
       .c = c,
       .out = packed_view(destination, dtype, Layout::RowMajor, shape, 1, workspace.device)},
      state->scratch);
  state_ = std::move(state);
}

}  // namespace gemmery::describe
