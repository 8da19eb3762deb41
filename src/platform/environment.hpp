// SPDX-License-Identifier: Apache-2.0
// Environment variables of this library: GEMMERY_*. Every name is listed in docs/environment.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gemmery::platform {

// The value of a variable; nothing if it is unset or empty, or if the process runs with raised
// privileges (secure_getenv).
std::optional<std::string> read_environment(const char* name);

// A whole number in [least, most]. Throws Error (invalid_argument), which names the variable, for
// anything else.
std::optional<std::int64_t> read_environment_integer(const char* name, std::int64_t least,
                                                     std::int64_t most);

// 0/1, true/false, on/off. Throws Error (invalid_argument), which names the variable, for anything
// else.
bool read_environment_flag(const char* name, bool default_value = false);

// A path that starts with '/'. Throws Error (invalid_argument), which names the variable, for a
// relative one.
std::optional<std::string> read_environment_path(const char* name);

}  // namespace gemmery::platform
