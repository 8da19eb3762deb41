// SPDX-License-Identifier: Apache-2.0
// The target of compiled code: "sm_80", "sm_90a", "sm_100f" or "cpu".
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include <gemmery/export.hpp>

namespace gemmery {

// Code for a portable target runs on it and on every later one of its major version (cubins); code
// for a family target ("f") on its family; code for an exact target ("a") only there.
struct Target {
  std::uint16_t architecture = 0;  // 90 for sm_90; 0 for the CPU
  char suffix = 0;                 // 0 portable, 'f' family, 'a' exact

  friend auto operator<=>(const Target&, const Target&) = default;

  static constexpr Target cpu() { return {}; }
  constexpr bool is_cpu() const { return architecture == 0; }
  constexpr int major() const { return architecture / 10; }
  constexpr int minor() const { return architecture % 10; }
};

GEMMERY_API std::string to_string(Target target);

// "cpu", "sm_90a", "90a", "90"; throws Error (invalid_argument) that names what is wrong: an
// unknown form, 'a' below sm_90, 'f' below sm_100.
GEMMERY_API Target parse_target(std::string_view text);

// True if a cubin built for `code` loads on a device whose own target is `device` (its suffix is
// ignored).
GEMMERY_API bool runs_on(Target code, Target device) noexcept;

}  // namespace gemmery
