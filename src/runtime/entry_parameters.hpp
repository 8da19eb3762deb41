// SPDX-License-Identifier: Apache-2.0
// The parameters of an entry, read from its compiled code. The declaration of a user's kernel is
// checked against them before the first launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::runtime {

// The size of each parameter in bytes, in order. The driver receives a pointer to each parameter
// and copies it to an address with the parameter's alignment.
using EntryParameters = std::vector<std::uint32_t>;

// Nothing if the code does not have them in a known format.
std::optional<EntryParameters> parameters_of_cubin(std::span<const std::byte> cubin,
                                                   std::string_view entry);
std::optional<EntryParameters> parameters_of_ptx(std::string_view ptx, std::string_view entry);

// "3 of 8, 8 and 4 bytes"
std::string describe(const EntryParameters& parameters);

}  // namespace gemmery::runtime
