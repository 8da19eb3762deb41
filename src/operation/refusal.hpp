// SPDX-License-Identifier: Apache-2.0
// The error that this room throws about an operand of a GEMM.
#pragma once

#include <gemmery/error.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace gemmery::operation {

[[noreturn]] inline void refuse(std::string_view operand, std::string expected, std::string got,
                                std::string hint = {},
                                ErrorKind kind = ErrorKind::invalid_argument) {
  throw Error({.kind = kind,
               .operand = "gemm: " + std::string(operand),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

}  // namespace gemmery::operation
