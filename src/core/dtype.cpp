// SPDX-License-Identifier: Apache-2.0
// Reads the spellings of element types: the table's names, and those of NumPy, CUDA, CUTLASS and C.
#include <gemmery/dtype.hpp>

#include <utility>

namespace gemmery {
namespace {

// Other systems' names for the types of dtype.def. Words that name a way to compute (tf32) are not
// listed.
constexpr std::pair<std::string_view, DType> foreign_spellings[] = {
    {"double", DType::float64},
    {"float", DType::float32},
    {"half", DType::float16},
    {"fp64", DType::float64},
    {"fp32", DType::float32},
    {"fp16", DType::float16},
    {"float8_e8m0", DType::float8_e8m0fnu},
    {"float8_e4m3", DType::float8_e4m3fn},
    {"float4_e2m1fn_x2", DType::float4_e2m1fn},
    {"float4_e2m1", DType::float4_e2m1fn},
    {"float6_e2m3", DType::float6_e2m3fn},
    {"float6_e3m2", DType::float6_e3m2fn},
    {"i4", DType::int4},
    {"ue8m0", DType::float8_e8m0fnu},
    {"i8", DType::int8},
    {"i32", DType::int32},
    {"Float64", DType::float64},
    {"Float32", DType::float32},
    {"Float16", DType::float16},
    {"BFloat16", DType::bfloat16},
    {"Float8E4M3FN", DType::float8_e4m3fn},
    {"Float8E5M2", DType::float8_e5m2},
    {"Float8E8M0FNU", DType::float8_e8m0fnu},
    {"Float6E2M3FN", DType::float6_e2m3fn},
    {"Float6E3M2FN", DType::float6_e3m2fn},
    {"Float4E2M1FN", DType::float4_e2m1fn},
    {"Int4", DType::int4},
    {"Uint4", DType::uint4},
    {"Int8", DType::int8},
    {"Uint8", DType::uint8},
    {"Int32", DType::int32},
    {"<f8", DType::float64},
    {"<f4", DType::float32},
    {"<f2", DType::float16},
    {"|i1", DType::int8},
    {"|u1", DType::uint8},
    {"<i4", DType::int32},
    {"<u4", DType::uint32},
    {"CUDA_R_64F", DType::float64},
    {"CUDA_R_32F", DType::float32},
    {"CUDA_R_16F", DType::float16},
    {"CUDA_R_16BF", DType::bfloat16},
    {"CUDA_R_8F_E4M3", DType::float8_e4m3fn},
    {"CUDA_R_8F_E5M2", DType::float8_e5m2},
    {"CUDA_R_8F_UE8M0", DType::float8_e8m0fnu},
    {"CUDA_R_6F_E2M3", DType::float6_e2m3fn},
    {"CUDA_R_6F_E3M2", DType::float6_e3m2fn},
    {"CUDA_R_4F_E2M1", DType::float4_e2m1fn},
    {"CUDA_R_4I", DType::int4},
    {"CUDA_R_4U", DType::uint4},
    {"CUDA_R_8I", DType::int8},
    {"CUDA_R_8U", DType::uint8},
    {"CUDA_R_32I", DType::int32},
    {"CUDA_R_32U", DType::uint32},
};

std::string_view without_torch_prefix(std::string_view word) {
  constexpr std::string_view prefix = "torch.";
  return word.starts_with(prefix) ? word.substr(prefix.size()) : word;
}

}  // namespace

std::optional<DType> parse_dtype(std::string_view word) noexcept {
  const std::string_view plain = without_torch_prefix(word);
  for (const DTypeFacts& row : dtype_table) {
    if (plain == row.name || plain == row.alias) return row.dtype;
  }
  for (const auto& [spelling, dtype] : foreign_spellings) {
    if (plain == spelling) return dtype;
  }
  return std::nullopt;
}

}  // namespace gemmery
