// SPDX-License-Identifier: Apache-2.0
// The enumerators of descriptions as text, and their storage types.
#include <gemmery/describe_conv.hpp>

#include <array>
#include <cstddef>

namespace gemmery::describe {
namespace {

template <std::size_t count, class Word>
std::string_view text_of(const std::array<std::string_view, count>& texts, Word word) noexcept {
  const auto at = static_cast<std::size_t>(word);
  return at < count ? texts[at] : "unknown";
}

}  // namespace

DType storage_type(Element element) noexcept {
  switch (element) {
    case Element::int8:
      return DType::int8;
    case Element::uint8:
      return DType::uint8;
    case Element::int32:
      return DType::int32;
    case Element::float16:
      return DType::float16;
    case Element::bfloat16:
      return DType::bfloat16;
    case Element::float32:
    case Element::tfloat32:
      return DType::float32;
    case Element::float64:
      return DType::float64;
    case Element::float8_e4m3fn:
      return DType::float8_e4m3fn;
    case Element::float8_e5m2:
      return DType::float8_e5m2;
  }
  return DType::float32;
}

std::string_view name(OpcodeClass opcode_class) noexcept {
  static constexpr std::array<std::string_view, 2> texts{"Simt", "TensorOp"};
  return text_of(texts, opcode_class);
}

std::string_view name(MathOperation operation) noexcept {
  static constexpr std::array<std::string_view, 10> texts{"multiply_add",
                                                          "multiply_add_saturate",
                                                          "multiply_add_fast_f32",
                                                          "multiply_add_fast_f16",
                                                          "multiply_add_fast_bf16",
                                                          "xor_popc",
                                                          "multiply_add_complex",
                                                          "multiply_add_complex_gaussian",
                                                          "multiply_add_complex_fast_f32",
                                                          "multiply_add_mixed_input_upcast"};
  return text_of(texts, operation);
}

std::string_view name(Element element) noexcept {
  return element == Element::tfloat32 ? "tfloat32" : gemmery::name(storage_type(element));
}

std::string_view name(Layout layout) noexcept {
  static constexpr std::array<std::string_view, 7> texts{
      "RowMajor",   "ColumnMajor",    "RowMajorInterleaved32", "ColumnMajorInterleaved32",
      "TensorNHWC", "TensorNC32HW32", "TensorC32RSK32"};
  return text_of(texts, layout);
}

std::string_view name(SwizzlingFunctor swizzle) noexcept {
  static constexpr std::array<std::string_view, 9> texts{"IdentitySwizzle1",
                                                         "IdentitySwizzle2",
                                                         "IdentitySwizzle4",
                                                         "IdentitySwizzle8",
                                                         "HorizontalSwizzle",
                                                         "BatchedIdentitySwizzle",
                                                         "StridedDgradIdentitySwizzle1",
                                                         "StridedDgradIdentitySwizzle4",
                                                         "StridedDgradHorizontalSwizzle"};
  return text_of(texts, swizzle);
}

std::string_view name(Mode mode) noexcept {
  static constexpr std::array<std::string_view, 4> texts{"Gemm", "GemmSplitKParallel", "Batched",
                                                         "Array"};
  return text_of(texts, mode);
}

std::string_view name(IteratorAlgorithm algorithm) noexcept {
  static constexpr std::array<std::string_view, 4> texts{"analytic", "optimized", "fixed_channels",
                                                         "few_channels"};
  return text_of(texts, algorithm);
}

std::string_view name(StrideSupport support) noexcept {
  return support == StrideSupport::Strided ? "Strided" : "Unity";
}

std::string_view name(SplitKMode mode) noexcept {
  static constexpr std::array<std::string_view, 3> texts{"None_", "Serial", "Parallel"};
  return text_of(texts, mode);
}

}  // namespace gemmery::describe
