// SPDX-License-Identifier: Apache-2.0
// Makes the handlers for all types of an instruction from one generic function.
#pragma once

#include <cstdint>
#include <type_traits>

#include "emulator/instruction/form.hpp"
#include "emulator/instruction/lane_apply.hpp"

namespace gemmery::emulator {

template <auto generic, class T>
T unary_lane(T a) {
  return static_cast<T>(generic(a));
}
template <auto generic, class T>
T binary_lane(T a, T b) {
  return static_cast<T>(generic(a, b));
}
template <auto generic, class T>
T ternary_lane(T a, T b, T c) {
  return static_cast<T>(generic(a, b, c));
}

template <auto generic>
inline constexpr TypedHandler unary_integers[] = {
    {ScalarType::u16, run_lanes<unary_lane<generic, std::uint16_t>>},
    {ScalarType::s16, run_lanes<unary_lane<generic, std::int16_t>>},
    {ScalarType::u32, run_lanes<unary_lane<generic, std::uint32_t>>},
    {ScalarType::s32, run_lanes<unary_lane<generic, std::int32_t>>},
    {ScalarType::u64, run_lanes<unary_lane<generic, std::uint64_t>>},
    {ScalarType::s64, run_lanes<unary_lane<generic, std::int64_t>>},
};
template <auto generic>
inline constexpr TypedHandler binary_integers[] = {
    {ScalarType::u16, run_lanes<binary_lane<generic, std::uint16_t>>},
    {ScalarType::s16, run_lanes<binary_lane<generic, std::int16_t>>},
    {ScalarType::u32, run_lanes<binary_lane<generic, std::uint32_t>>},
    {ScalarType::s32, run_lanes<binary_lane<generic, std::int32_t>>},
    {ScalarType::u64, run_lanes<binary_lane<generic, std::uint64_t>>},
    {ScalarType::s64, run_lanes<binary_lane<generic, std::int64_t>>},
};
template <auto generic>
inline constexpr TypedHandler ternary_integers[] = {
    {ScalarType::u16, run_lanes<ternary_lane<generic, std::uint16_t>>},
    {ScalarType::s16, run_lanes<ternary_lane<generic, std::int16_t>>},
    {ScalarType::u32, run_lanes<ternary_lane<generic, std::uint32_t>>},
    {ScalarType::s32, run_lanes<ternary_lane<generic, std::int32_t>>},
    {ScalarType::u64, run_lanes<ternary_lane<generic, std::uint64_t>>},
    {ScalarType::s64, run_lanes<ternary_lane<generic, std::int64_t>>},
};

template <auto generic>
inline constexpr TypedHandler unary_bits[] = {
    {ScalarType::b16, run_lanes<unary_lane<generic, std::uint16_t>>},
    {ScalarType::b32, run_lanes<unary_lane<generic, std::uint32_t>>},
    {ScalarType::b64, run_lanes<unary_lane<generic, std::uint64_t>>},
};
template <auto generic>
inline constexpr TypedHandler binary_bits[] = {
    {ScalarType::b16, run_lanes<binary_lane<generic, std::uint16_t>>},
    {ScalarType::b32, run_lanes<binary_lane<generic, std::uint32_t>>},
    {ScalarType::b64, run_lanes<binary_lane<generic, std::uint64_t>>},
};

// Converts to an unsigned type in which sums and products wrap, as signed overflow is not
// defined in C++.
template <class T>
constexpr auto wrapping(T value) noexcept {
  using Bits = std::make_unsigned_t<T>;
  using Wide = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  return static_cast<Wide>(static_cast<Bits>(value));
}

}  // namespace gemmery::emulator
