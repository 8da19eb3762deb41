// SPDX-License-Identifier: Apache-2.0
// Exceptions of a user's functions as text. They must not affect other kernels than the user's.
#pragma once

#include <gemmery/error.hpp>

#include <string>
#include <string_view>

namespace gemmery::user {

// Within a handler: the text of the exception. An Interruption is rethrown.
std::string caught_text();

// Within a handler: throws an Error of a kind that names kernel and function, with the exception
// nested in it.
[[noreturn]] void rethrow_caught(ErrorKind kind, std::string_view kernel_name,
                                 std::string_view function);

}  // namespace gemmery::user
