// SPDX-License-Identifier: Apache-2.0
// Kernels of the simt family whose device code is wrong on purpose, each in one way: a device's
// conformance is worth what it finds of them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <gemmery/family.hpp>

namespace gemmery::conformance {

// The family, with provider name "test" and family name "device_mutants".
std::unique_ptr<Family> make_device_mutants();

// What is wrong with one of its kernels: "no barrier after a block of k"; "nothing" for the sound
// ones.
std::string_view fault_of(const Kernel& kernel);

}  // namespace gemmery::conformance
