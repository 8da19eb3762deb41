// SPDX-License-Identifier: Apache-2.0
// The operand of such an error consists of the kernel's name and the field's.
#include "providers/user/refusal.hpp"

#include <gemmery/error.hpp>

#include <utility>

#include <fmt/format.h>

namespace gemmery::user {

void refuse(std::string_view kernel_name, std::string_view field, std::string expected,
            std::string got, std::string hint) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = fmt::format("{}: {}", kernel_name, field),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

}  // namespace gemmery::user
