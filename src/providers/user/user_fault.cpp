// SPDX-License-Identifier: Apache-2.0
// The text of an exception that a user's function threw.
#include "providers/user/user_fault.hpp"

#include <exception>

namespace gemmery::user {

std::string caught_text() {
  try {
    throw;
  } catch (const Interruption&) {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

void rethrow_caught(ErrorKind kind, std::string_view kernel_name, std::string_view function) {
  std::throw_with_nested(Error({.kind = kind,
                                .operand = std::string(kernel_name),
                                .got = std::string(function) + " threw: " + caught_text()}));
}

}  // namespace gemmery::user
