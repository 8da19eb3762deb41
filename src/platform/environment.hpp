// SPDX-License-Identifier: Apache-2.0
// Environment variables of this library: GEMMERY_*. Every name is listed in docs/environment.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gemmery::platform {

// The value of a variable; nothing where it is unset or empty, or where the process runs with
// raised privileges (secure_getenv).
std::optional<std::string> read_environment(const char* name);

// A whole number in [least, most]; throws Error (invalid_argument) naming the variable for anything
// else.
std::optional<std::int64_t> read_environment_integer(const char* name, std::int64_t least,
                                                     std::int64_t most);

// 0/1, true/false, on/off; throws Error (invalid_argument) naming the variable for anything else.
bool read_environment_flag(const char* name, bool default_value = false);

// A path that starts with '/'; throws Error (invalid_argument) naming the variable for a relative
// one.
std::optional<std::string> read_environment_path(const char* name);

}  // namespace gemmery::platform
