// SPDX-License-Identifier: Apache-2.0
// The providers in the order of preference, best first. The last one is the reference, which
// accepts every problem.
#include "providers/list.hpp"

#include "kernel/registry.hpp"
#include "providers/cublaslt/cublaslt_provider.hpp"
#include "providers/host/host_provider.hpp"
#include "providers/templates/templates_provider.hpp"

namespace gemmery::providers {

void register_built_in() {
  static const bool is_registered = [] {
    for (auto& family : templates::make_families()) kernel::add_family(std::move(family));
    for (auto& family : cublaslt::make_families()) kernel::add_family(std::move(family));
    for (auto& family : host::make_families()) kernel::add_family(std::move(family));
    return true;
  }();
  (void)is_registered;
}

}  // namespace gemmery::providers
