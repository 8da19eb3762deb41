// SPDX-License-Identifier: Apache-2.0
// What the entry of compiled code takes, read from the code: the host half of a user's kernel is
// held against it before the first launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::runtime {

// Where one parameter lies among the bytes of all.
struct EntryParameter {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;

  friend bool operator==(const EntryParameter&, const EntryParameter&) = default;
};
using EntryParameters = std::vector<EntryParameter>;

// In their order; nothing where the code does not tell in a way that is understood here.
std::optional<EntryParameters> parameters_of_cubin(std::span<const std::byte> cubin,
                                                   std::string_view entry);
std::optional<EntryParameters> parameters_of_ptx(std::string_view ptx, std::string_view entry);

// "3 of 8, 8 and 4 bytes"
std::string to_string(const EntryParameters& parameters);

}  // namespace gemmery::runtime
