// SPDX-License-Identifier: Apache-2.0
// The table of interned programs; today it holds the default one.
#include <gemmery/epilogue.hpp>
#include <gemmery/error.hpp>

#include <cctype>
#include <string>

namespace gemmery {
namespace {

constexpr std::string_view default_text = "D = alpha * accum + beta * C";

bool is_space(char letter) { return std::isspace(static_cast<unsigned char>(letter)) != 0; }

// Where `program` departs from `reference` when white space is left out of both; nothing where it
// does not.
std::size_t find_departure(std::string_view program, std::string_view reference) {
  std::size_t at = 0;
  for (std::size_t want = 0;; ++want, ++at) {
    while (at < program.size() && is_space(program[at])) ++at;
    while (want < reference.size() && is_space(reference[want])) ++want;
    if (at == program.size() && want == reference.size()) return std::string_view::npos;
    if (at == program.size() || want == reference.size() || program[at] != reference[want])
      return at;
  }
}

}  // namespace

std::string_view text(EpilogueId) noexcept { return default_text; }

EpilogueId parse_epilogue(std::string_view program) {
  const std::size_t departure = find_departure(program, default_text);
  if (departure == std::string_view::npos) return default_epilogue;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "epilogue",
               .expected = "\"" + std::string(default_text) + "\"",
               .got = "\"" + std::string(program.substr(0, 200)) +
                      "\", which departs from it at column " + std::to_string(departure + 1),
               .hint = "this version fuses the default program only"});
}

}  // namespace gemmery
