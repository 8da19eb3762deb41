// SPDX-License-Identifier: Apache-2.0
// Parses and multiplies factors.
#include "providers/user/factors.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "core/trimmed.hpp"

namespace gemmery::user {
namespace {

constexpr std::array<std::pair<std::string_view, Quantity>, 5> words{
    {{"m", Quantity::m},
     {"n", Quantity::n},
     {"k", Quantity::k},
     {"l", Quantity::l},
     {"multiprocessors", Quantity::multiprocessors}}};

[[noreturn]] void refuse_factor(std::string_view text, std::string_view field, std::string got) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::string(field),
               .expected =
                   "factors joined by '*', each a number, m, n, k, l or multiprocessors, or "
                   "one of them over a number: \"m/64*n/64\"",
               .got = std::move(got) + " in \"" + std::string(text) + "\""});
}

std::optional<std::int64_t> parse_count(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool is_count = error == std::errc{} && end == word.data() + word.size() && value > 0;
  return is_count ? std::optional(value) : std::nullopt;
}

std::int64_t value_of(Quantity quantity, const Quantities& of) noexcept {
  switch (quantity) {
    case Quantity::m:
      return of.problem.m;
    case Quantity::n:
      return of.problem.n;
    case Quantity::k:
      return of.problem.k;
    case Quantity::l:
      return of.problem.l;
    case Quantity::multiprocessors:
      return of.multiprocessors;
    case Quantity::number:
      break;
  }
  return 1;
}

}  // namespace

Factors::Factors(std::string_view text, std::string_view field) {
  std::string_view rest = text;
  for (bool is_last = false; !is_last;) {
    const std::size_t end = rest.find('*');
    is_last = end == std::string_view::npos;
    const std::string_view word = trimmed(rest.substr(0, end), " ");
    rest.remove_prefix(is_last ? rest.size() : end + 1);

    const std::size_t slash = word.find('/');
    const std::string_view counted = trimmed(word.substr(0, slash), " ");
    Factor factor;
    const auto known =
        std::ranges::find(words, counted, &std::pair<std::string_view, Quantity>::first);
    if (known != words.end()) {
      factor.quantity = known->second;
    } else if (counted == "0") {
      factor.number = 0;
    } else {
      const auto number = parse_count(counted);
      if (!number) refuse_factor(text, field, "\"" + std::string(counted) + "\"");
      factor.number = *number;
    }
    if (slash != std::string_view::npos) {
      const auto divisor = parse_count(trimmed(word.substr(slash + 1), " "));
      if (!divisor) refuse_factor(text, field, "\"" + std::string(word) + "\"");
      factor.divisor = *divisor;
    }
    factors_.push_back(factor);
  }
}

std::optional<std::int64_t> Factors::evaluate(const Quantities& quantities) const noexcept {
  std::int64_t product = 1;
  for (const Factor& factor : factors_) {
    const std::int64_t value =
        factor.quantity == Quantity::number ? factor.number : value_of(factor.quantity, quantities);
    const std::int64_t quotient = value / factor.divisor + (value % factor.divisor != 0 ? 1 : 0);
    if (__builtin_mul_overflow(product, quotient, &product)) return std::nullopt;
  }
  return product;
}

bool Factors::mentions(Quantity quantity) const noexcept {
  return std::ranges::any_of(factors_,
                             [&](const Factor& factor) { return factor.quantity == quantity; });
}

}  // namespace gemmery::user
