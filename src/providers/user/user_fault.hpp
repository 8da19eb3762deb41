// SPDX-License-Identifier: Apache-2.0
// What a function of the user's throws, in words: it must not disturb anything but its own kernel.
#pragma once

#include <gemmery/error.hpp>

#include <string>
#include <string_view>

namespace gemmery::user {

// Within a handler: what was thrown. An Interruption goes on, past the caller.
std::string caught_text();

// Within a handler: throws an Error of a kind that names kernel and function, what was thrown
// nested in it.
[[noreturn]] void rethrow_caught(ErrorKind kind, std::string_view kernel_name,
                                 std::string_view function);

}  // namespace gemmery::user
