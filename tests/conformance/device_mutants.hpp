// SPDX-License-Identifier: Apache-2.0
// Kernels whose device code is wrong on purpose, each in one way. The conformance of a device is
// judged by how many of them it catches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <gemmery/family.hpp>

#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {

// The family, with provider name "test" and family name "device_mutants". Its sm90 kernels run on
// two multiprocessors at most, streams on three, so that blocks have several tiles of small
// problems.
std::unique_ptr<Family> make_device_mutants();

const DeviceFault& fault_of(const Kernel& kernel);

// The line of a problem that mutants of a kernel with a program run: "gemm 256x72x128x2 a=bf16
// out=f32 epilogue=\"D = …\" …".
struct Extents {
  std::int64_t m, n, k, l;
};
std::string program_line(SoundKernel kernel, const Extents& extents);

// The same kernel with delays in it, as `plant_delays` has them; 0 is none. `enumerate` visits the
// kernels without delays, discovery offers all.
constexpr std::uint32_t most_delays = 8;
Kernel with_delays(const Kernel& kernel, std::uint32_t seed);

}  // namespace gemmery::conformance
