// SPDX-License-Identifier: Apache-2.0
// The functions of Family that all families in this room share.
#include "providers/templates/template_family.hpp"

#include <utility>

#include "providers/templates/epilogue_parameters.hpp"

namespace gemmery::templates {

Status TemplateFamily::carries(const GemmProblem& problem) const { return check_carried(problem); }

// A text that spells a kernel in another way is not its name.
std::optional<Kernel> TemplateFamily::parse_name(std::string_view kernel_name) const {
  std::optional<Kernel> kernel = read_name(kernel_name);
  if (kernel && this->kernel_name(*kernel) != kernel_name) kernel.reset();
  return kernel;
}

Reason TemplateFamily::reason_of(std::string failed) const {
  return {.provider = std::string(provider()),
          .family = std::string(name()),
          .design_class = {},
          .failed = std::move(failed),
          .fitting = 0,
          .nearest = {}};
}

}  // namespace gemmery::templates
