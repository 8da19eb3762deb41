// SPDX-License-Identifier: Apache-2.0
// Kernels with one planted fault each in their device code. The share of faults caught is the
// measure of a device's conformance tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <gemmery/family.hpp>

#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {

// The family, with provider name "test" and family name "device_mutants". Its sm90 kernels run on
// at most two multiprocessors, stream-K on three and clusters on four, so that blocks have several
// tiles of small problems.
std::unique_ptr<Family> make_device_mutants();

const DeviceFault& fault_of(const Kernel& kernel);

// The problem line for mutants of a kernel with a program: "gemm 256x72x128x2 a=bf16 out=f32
// epilogue=\"D = …\" …".
struct Extents {
  std::int64_t m, n, k, l;
};
std::string program_line(SoundKernel kernel, const Extents& extents);

// The same kernel with delays (`plant_delays`); 0 means none. `enumerate` visits only kernels
// without delays, discovery offers all.
constexpr std::uint32_t most_delays = 8;
Kernel with_delays(const Kernel& kernel, std::uint32_t seed);

}  // namespace gemmery::conformance
