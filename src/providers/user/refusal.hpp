// SPDX-License-Identifier: Apache-2.0
// Errors about a declaration, with the kernel and the field.
#pragma once

#include <string>
#include <string_view>

namespace gemmery::user {

// Throws Error (invalid_argument).
[[noreturn]] void refuse(std::string_view kernel_name, std::string_view field, std::string expected,
                         std::string got, std::string hint = {});

}  // namespace gemmery::user
