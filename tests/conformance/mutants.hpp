// SPDX-License-Identifier: Apache-2.0
// A family of host kernels with one planted fault each. The share of faults caught is the measure
// of the suite.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <gemmery/family.hpp>

namespace gemmery::conformance {

// The family, with provider name "test" and family name "mutants". Its kernels run on the CPU.
std::unique_ptr<Family> make_mutants();

// The kernels without a fault, one for each of the family's operand combinations; and the kernels
// with a fault.
std::vector<Kernel> sound_kernels(const Family& family);
std::vector<Kernel> faulty_kernels(const Family& family);

}  // namespace gemmery::conformance
