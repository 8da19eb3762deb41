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

// Bytes of each parameter, in their order. Where they lie is the driver's affair: it takes a
// pointer to each, and what is aligned to 64 bytes is moved to where that holds in the device's
// memory.
using EntryParameters = std::vector<std::uint32_t>;

// Nothing where the code does not tell in a way that is understood here.
std::optional<EntryParameters> parameters_of_cubin(std::span<const std::byte> cubin,
                                                   std::string_view entry);
std::optional<EntryParameters> parameters_of_ptx(std::string_view ptx, std::string_view entry);

// "3 of 8, 8 and 4 bytes"
std::string describe(const EntryParameters& parameters);

}  // namespace gemmery::runtime
