// SPDX-License-Identifier: Apache-2.0
// A described convolution: check, name, source, run.
#include <gemmery/describe_conv.hpp>

#include <utility>

#include "describe/bound_problem.hpp"
#include "describe/conv_description.hpp"
#include "describe/conv_state.hpp"
#include "describe/described_kernel.hpp"
#include "describe/emitted_text.hpp"
#include "describe/functor_program.hpp"
#include "describe/refusal.hpp"

namespace gemmery::describe {
namespace {

Kernel own_kernel(const Conv2dDescription& description) {
  check_conv_description(description);
  const GemmDescription gemm = as_gemm(description);
  const OperandRules rules =
      conv_rules(description, is_default_program(description.epilogue_functor));
  const Convolution convolution = own_convolution(description);
  // Refuses an invalid tile before the program is checked.
  described_kernel(gemm, rules, {.convolution = convolution});
  return described_kernel(gemm, rules,
                          {.epilogue = own_epilogue(gemm), .convolution = convolution});
}

}  // namespace

Conv2dOperation::Conv2dOperation(Conv2dDescription description)
    : Kernel(own_kernel(description)),
      description_(std::make_shared<const Conv2dDescription>(std::move(description))) {}

Target Conv2dOperation::target() const noexcept {
  return target_of(description_->compute_capability);
}

std::string Conv2dOperation::emit() const { return emitted_text(*this, target()); }

OutputOp Conv2dOperation::epilogue_type(double alpha, double beta,
                                        std::vector<double> activation_args) const {
  return make_output_op(description_->epilogue_functor, alpha, beta, std::move(activation_args));
}

void Conv2dOperation::run(const Conv2dArguments& arguments, Stream stream) const {
  if (!(arguments.state()->operation == *this))
    refuse("arguments", "arguments of this operation",
           "those of " + arguments.state()->operation.name());
  run_steps(arguments.state()->steps(), stream);
}

}  // namespace gemmery::describe
