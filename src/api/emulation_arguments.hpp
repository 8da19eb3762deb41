// SPDX-License-Identifier: Apache-2.0
// The arguments of an emulated kernel: numbers to the types of its parameters, buffers to memory of
// the device.
#pragma once

#include <gemmery/emulate.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/device.hpp"
#include "emulator/module.hpp"

namespace gemmery {

// The buffers of one request on the device. The caller holds `executing` of the device while it
// uses them.
class EmulationBuffers {
 public:
  EmulationBuffers(const std::vector<EmulationArgument>& arguments,
                   emulator::EmulatedDevice& device)
      : arguments_(arguments), device_(device), addresses_(arguments.size()) {}
  ~EmulationBuffers();
  EmulationBuffers(const EmulationBuffers&) = delete;
  EmulationBuffers& operator=(const EmulationBuffers&) = delete;

  // Fills the buffers with the arguments' contents. Throws Error (out_of_memory).
  void refill();
  std::vector<EmulationOutput> read() const;
  std::uint64_t address(std::size_t argument) const { return addresses_[argument]; }

 private:
  const std::vector<EmulationArgument>& arguments_;
  emulator::EmulatedDevice& device_;
  void allocate(std::size_t argument);

  std::vector<std::uint64_t> addresses_;  // by argument; 0: none
};

// The bytes of the kernel's parameters. Throws Error (invalid_argument), which names the parameter,
// for a number of arguments or a type that differs from the kernel's.
std::vector<std::byte> lay_out_parameters(const emulator::KernelImage& image,
                                          const std::vector<EmulationArgument>& arguments,
                                          const EmulationBuffers& buffers);

}  // namespace gemmery
