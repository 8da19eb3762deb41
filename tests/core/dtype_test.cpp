// SPDX-License-Identifier: Apache-2.0
#include <gemmery/dtype.hpp>

#include <gtest/gtest.h>

#include <string>

namespace gemmery {
namespace {

TEST(DType, every_row_is_read_back_by_name_alias_and_torch_spelling) {
  for (const DTypeFacts& row : dtype_table) {
    EXPECT_EQ(parse_dtype(row.name), row.dtype);
    EXPECT_EQ(parse_dtype(row.alias), row.dtype);
    EXPECT_EQ(parse_dtype("torch." + std::string(row.name)), row.dtype);
    EXPECT_EQ(facts(row.dtype).name, row.name);
  }
}

TEST(DType, bits_of_the_encoding_add_up) {
  for (const DTypeFacts& row : dtype_table) {
    if (row.kind != DTypeKind::floating) continue;
    const int sign = row.dtype == DType::float8_e8m0fnu ? 0 : 1;
    EXPECT_EQ(sign + row.exponent_bits + row.mantissa_bits, row.bits) << row.name;
  }
}

TEST(DType, foreign_spellings_name_one_type) {
  EXPECT_EQ(parse_dtype("CUDA_R_16BF"), DType::bfloat16);
  EXPECT_EQ(parse_dtype("half"), DType::float16);
  EXPECT_EQ(parse_dtype("<f4"), DType::float32);
  EXPECT_EQ(parse_dtype("Float8E4M3FN"), DType::float8_e4m3fn);
}

TEST(DType, runs_of_packed_elements_are_bytes_rounded_up) {
  EXPECT_EQ(storage_bytes(DType::int4, 5), 3);
  EXPECT_EQ(storage_bytes(DType::int4, -6), -3);
  EXPECT_EQ(storage_bytes(DType::float6_e2m3fn, 4), 3);
  EXPECT_EQ(storage_bytes(DType::float6_e2m3fn, 5), 4);
  EXPECT_EQ(storage_bytes(DType::float16, -3), -6);
  for (const DTypeFacts& row : dtype_table)
    EXPECT_EQ(whole_elements(row.dtype) * row.bits % 8, 0) << row.name;
}

TEST(DType, tf32_is_no_storage_type_and_nonsense_is_none) {
  for (const char* const word : {"tf32", "", " f32", "F32", "float", "f32\n", "torch.", "int"}) {
    if (std::string_view(word) == "float") continue;  // C's name for float32
    EXPECT_FALSE(parse_dtype(word)) << word;
  }
}

TEST(DType, no_two_rows_share_a_dlpack_type) {
  for (const DTypeFacts& x : dtype_table) {
    for (const DTypeFacts& y : dtype_table) {
      EXPECT_TRUE(x.dtype == y.dtype || x.dlpack_code != y.dlpack_code || x.bits != y.bits)
          << x.name << " " << y.name;
    }
  }
}

}  // namespace
}  // namespace gemmery
