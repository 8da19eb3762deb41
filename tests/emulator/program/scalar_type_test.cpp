// SPDX-License-Identifier: Apache-2.0
// Types: names convert to types and back; widths and kinds are those of the manual.
#include <gtest/gtest.h>

#include "emulator/program/scalar_type.hpp"

namespace gemmery::emulator {
namespace {

TEST(ScalarType, each_name_leads_back_to_its_type) {
  for (int at = static_cast<int>(ScalarType::pred); at <= static_cast<int>(ScalarType::b1); ++at) {
    const auto type = static_cast<ScalarType>(at);
    EXPECT_EQ(find_scalar_type(name(type)), type) << name(type);
  }
}

TEST(ScalarType, other_words_are_no_types) {
  for (const char* word : {"", "none", "f31", "F32", "f32 ", "global", "x2"})
    EXPECT_FALSE(find_scalar_type(word)) << word;
}

struct Row {
  ScalarType type;
  int bits, bytes;
  bool is_signed, is_unsigned, is_float;
};

TEST(ScalarType, widths_and_kinds) {
  for (const Row& row : {Row{ScalarType::pred, 1, 1, false, false, false},
                         Row{ScalarType::b128, 128, 16, false, false, false},
                         Row{ScalarType::u16, 16, 2, false, true, false},
                         Row{ScalarType::s64, 64, 8, true, false, false},
                         Row{ScalarType::u16x2, 32, 4, false, true, false},
                         Row{ScalarType::bf16x2, 32, 4, false, false, true},
                         Row{ScalarType::tf32, 32, 4, false, false, true},
                         Row{ScalarType::e4m3x2, 16, 2, false, false, true},
                         Row{ScalarType::s4, 4, 1, true, false, false},
                         Row{ScalarType::none, 0, 0, false, false, false}}) {
    EXPECT_EQ(bits_of(row.type), row.bits) << name(row.type);
    EXPECT_EQ(bytes_of(row.type), row.bytes) << name(row.type);
    EXPECT_EQ(is_signed_integer(row.type), row.is_signed) << name(row.type);
    EXPECT_EQ(is_unsigned_integer(row.type), row.is_unsigned) << name(row.type);
    EXPECT_EQ(is_float(row.type), row.is_float) << name(row.type);
  }
}

}  // namespace
}  // namespace gemmery::emulator
