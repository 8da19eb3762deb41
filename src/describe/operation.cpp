// SPDX-License-Identifier: Apache-2.0
// A described operation: check, name, source, run.
#include <fmt/format.h>
#include <gemmery/describe.hpp>

#include <utility>

#include "describe/arguments_state.hpp"
#include "describe/bound_problem.hpp"
#include "describe/described_kernel.hpp"
#include "describe/description_check.hpp"
#include "describe/emitted_text.hpp"
#include "describe/functor_program.hpp"
#include "describe/refusal.hpp"

namespace gemmery::describe {
namespace {

Kernel own_kernel(const GemmDescription& description) {
  check_description(description);
  const GemmDescription plain = with_plain_layouts(description);
  const OperandRules rules = rules_of(plain, is_default_program(plain.epilogue_functor));
  described_kernel(plain, rules);  // refuses an invalid tile before the program is checked
  return described_kernel(plain, rules, {.epilogue = own_epilogue(plain)});
}

}  // namespace

int TileDescription::num_threads() const noexcept {
  return 32 * warp_count[0] * warp_count[1] * warp_count[2];
}

GemmOperationUniversal::GemmOperationUniversal(GemmDescription description)
    : Kernel(own_kernel(description)),
      description_(std::make_shared<const GemmDescription>(std::move(description))) {}

Target GemmOperationUniversal::target() const noexcept {
  return target_of(description_->compute_capability);
}

std::string GemmOperationUniversal::emit() const { return emitted_text(*this, target()); }

OutputOp GemmOperationUniversal::epilogue_type(double alpha, double beta,
                                               std::vector<double> activation_args) const {
  return make_output_op(description_->epilogue_functor, alpha, beta, std::move(activation_args));
}

void GemmOperationUniversal::run(const GemmArguments& arguments, Stream stream) const {
  if (!(arguments.state()->operation == *this))
    refuse("arguments", "arguments of this operation",
           "those of " + arguments.state()->operation.name());
  run_steps(arguments.state()->steps(), stream);
}

}  // namespace gemmery::describe
