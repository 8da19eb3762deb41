// SPDX-License-Identifier: Apache-2.0
// The error that src/describe throws about a field of a description or of arguments.
#pragma once

#include <gemmery/error.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace gemmery::describe {

[[noreturn]] inline void refuse(std::string_view field, std::string expected, std::string got,
                                std::string hint = {},
                                ErrorKind kind = ErrorKind::invalid_argument) {
  throw Error({.kind = kind,
               .operand = std::string(field),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

[[noreturn]] inline void refuse_unsupported(std::string_view field, std::string expected,
                                            std::string got, std::string hint = {}) {
  refuse(field, std::move(expected), std::move(got), std::move(hint), ErrorKind::unsupported);
}

}  // namespace gemmery::describe
