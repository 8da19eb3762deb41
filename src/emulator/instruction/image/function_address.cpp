// SPDX-License-Identifier: Apache-2.0
#include "emulator/instruction/image/function_address.hpp"

#include "emulator/memory/address.hpp"

namespace gemmery::emulator {
namespace {

constexpr int identity_shift = 24;
constexpr std::uint64_t bytes_per_function = 16;

}  // namespace

std::uint64_t address_of_function(const Program& program, const Function& function) noexcept {
  const auto index = static_cast<std::uint64_t>(&function - program.functions.data());
  return function_window + (std::uint64_t{program.identity} << identity_shift) +
         index * bytes_per_function;
}

}  // namespace gemmery::emulator
