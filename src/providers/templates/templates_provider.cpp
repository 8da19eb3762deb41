// SPDX-License-Identifier: Apache-2.0
// The list of our GPU families, best first.
#include "providers/templates/templates_provider.hpp"

#include "providers/templates/depthwise/family.hpp"
#include "providers/templates/elementwise/family.hpp"
#include "providers/templates/simt/family.hpp"
#include "providers/templates/skinny/family.hpp"
#include "providers/templates/sm80/family.hpp"
#include "providers/templates/sm90/family.hpp"

namespace gemmery::templates {

std::vector<std::unique_ptr<Family>> make_families() {
  std::vector<std::unique_ptr<Family>> families;
  families.push_back(std::make_unique<Sm90Family>());
  families.push_back(std::make_unique<Sm80Family>());
  families.push_back(std::make_unique<SkinnyFamily>());
  families.push_back(std::make_unique<ElementwiseFamily>());
  families.push_back(std::make_unique<DepthwiseFamily>());
  families.push_back(std::make_unique<SimtFamily>());
  return families;
}

}  // namespace gemmery::templates
