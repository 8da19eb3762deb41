// SPDX-License-Identifier: Apache-2.0
#include "providers/cublaslt/cublaslt_provider.hpp"

#include "providers/cublaslt/family.hpp"

namespace gemmery::cublaslt {

std::vector<std::unique_ptr<Family>> make_families() {
  std::vector<std::unique_ptr<Family>> families;
  families.push_back(std::make_unique<CublasltFamily>());
  return families;
}

}  // namespace gemmery::cublaslt
