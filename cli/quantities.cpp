// SPDX-License-Identifier: Apache-2.0
// Chooses a unit and prints three significant digits.
#include "cli/quantities.hpp"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace gemmery::cli {
namespace {

std::string three_digits(double value) {
  if (!std::isfinite(value)) return "?";
  const double size = std::abs(value);
  if (size >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, size >= 10 ? 1 : 2);
}

// The first unit, in a series that rises by factors of 1000, in which the value is below 1000.
template <std::size_t count>
std::string scaled(double value, const std::array<std::string_view, count>& units) {
  std::size_t unit = 0;
  while (unit + 1 < count && std::abs(value) >= 999.5) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{} {}", three_digits(value), units[unit]);
}

}  // namespace

std::string time_text(double microseconds) {
  return scaled(microseconds, std::array<std::string_view, 3>{"us", "ms", "s"});
}

std::string rate_text(double flops_per_second) {
  return scaled(flops_per_second / 1e6,
                std::array<std::string_view, 4>{"MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"});
}

std::string size_text(std::int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  return scaled(static_cast<double>(bytes) / 1e3,
                std::array<std::string_view, 3>{"kB", "MB", "GB"});
}

std::string share_text(double share) { return three_digits(share * 100) + " %"; }

}  // namespace gemmery::cli
