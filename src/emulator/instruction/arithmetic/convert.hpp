// SPDX-License-Identifier: Apache-2.0
// Shared by the files of cvt and mov.
#pragma once

#include <cstdint>

#include "emulator/instruction/form.hpp"

namespace gemmery::emulator {

// s8 to s64, u8 to u64.
bool is_integer(ScalarType type) noexcept;

// Calls `use` with a zero of the C++ type of `type`; u64 if `type` is not an integer.
template <class Use>
auto with_integer(ScalarType type, Use use) {
  switch (type) {
    case ScalarType::s8:
      return use(std::int8_t{});
    case ScalarType::u8:
      return use(std::uint8_t{});
    case ScalarType::s16:
      return use(std::int16_t{});
    case ScalarType::u16:
      return use(std::uint16_t{});
    case ScalarType::s32:
      return use(std::int32_t{});
    case ScalarType::u32:
      return use(std::uint32_t{});
    case ScalarType::s64:
      return use(std::int64_t{});
    default:
      return use(std::uint64_t{});
  }
}

inline constexpr std::uint32_t flag_packs_signed = 1u << 12;  // cvt.pack

// cvt where a float takes part (convert_float.cpp, convert_pair.cpp).
void decode_float_conversion(Form& form, ScalarType to, ScalarType from);
void decode_pair_conversion(Form& form, ScalarType to, ScalarType from);

void decode_mov(DecodeContext& context, const Instruction& instruction, Operation& operation);

}  // namespace gemmery::emulator
