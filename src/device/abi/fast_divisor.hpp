// SPDX-License-Identifier: Apache-2.0
// Division by a number that is known on the host: on the device it is a multiplication and a shift,
// instead of a division that takes about 200 clocks.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// Divides numbers below 2^31. Made by `make_fast_divisor`; {} must not be used.
struct FastDivisor {
  unsigned divisor;
  unsigned multiplier;
  unsigned shift;

  GEMMERY_HOST_DEVICE
  constexpr unsigned divide(unsigned x) const {
    const auto high = static_cast<unsigned>(static_cast<UInt64>(x) * multiplier >> 32);
    return (high + x) >> shift;
  }
};

/// `divisor` from 1 to 2^31. With 2^(shift - 1) < divisor <= 2^shift, the multiplier is 2^32
/// (2^shift / divisor - 1), rounded up: the quotient is too large by less than x / 2^32 / divisor,
/// which reaches no integer.
GEMMERY_HOST_DEVICE
constexpr FastDivisor make_fast_divisor(unsigned divisor) {
  unsigned shift = 0;
  while ((static_cast<UInt64>(1) << shift) < divisor) ++shift;
  const UInt64 rest = (static_cast<UInt64>(1) << shift) - divisor;
  return {.divisor = divisor,
          .multiplier = static_cast<unsigned>((rest << 32) / divisor + 1),
          .shift = shift};
}

}  // namespace gemmery::abi
