// SPDX-License-Identifier: Apache-2.0
// The error that this room throws about an argument.
#pragma once

#include <gemmery/error.hpp>

#include <string>
#include <utility>

namespace gemmery::api {

[[noreturn]] inline void refuse(std::string operand, std::string expected, std::string got,
                                std::string hint = {}) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::move(operand),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

}  // namespace gemmery::api
