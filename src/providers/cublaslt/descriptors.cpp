// SPDX-License-Identifier: Apache-2.0
// Creates and fills in the objects; each call that fails throws.
#include "providers/cublaslt/descriptors.hpp"

#include <cstdint>

namespace gemmery::cublaslt {
namespace {

template <class Value>
void set(const Library& library, MatmulDescriptor operation, DescriptorAttribute attribute,
         Value value) {
  check(library,
        library.api.cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}

std::uint32_t epilogue_bits(const EpilogueForm& form) {
  std::uint32_t bits = 0;
  const auto add = [&](Epilogue epilogue) { bits |= static_cast<std::uint32_t>(epilogue); };
  if (form.activation == Activation::relu) add(Epilogue::relu);
  if (form.bias != no_operand) add(Epilogue::bias);
  if (bits == 0) add(Epilogue::plain);
  return bits;
}

void set_epilogue(const Library& library, MatmulDescriptor operation, const Product& product) {
  set(library, operation, DescriptorAttribute::epilogue, epilogue_bits(product.epilogue));
  if (product.bias.operand != no_operand) {
    if (product.bias.type != product.out.type)
      set(library, operation, DescriptorAttribute::bias_type,
          static_cast<std::int32_t>(product.bias.type));
    set(library, operation, DescriptorAttribute::bias_batch_stride, product.bias.batch_stride);
  }
}

// Divisible by the alignment and, below 16 bytes, by nothing larger.
void* sample_address(std::uint32_t alignment) noexcept {
  constexpr std::uintptr_t place = 4096;
  return reinterpret_cast<void*>(place + (alignment < 16 ? alignment : 0));
}

}  // namespace

Addresses sample_addresses(const Product& product) noexcept {
  Addresses addresses;
  if (product.first_scale.operand != no_operand)
    addresses.first_scale = sample_address(product.first_scale.alignment);
  if (product.second_scale.operand != no_operand)
    addresses.second_scale = sample_address(product.second_scale.alignment);
  if (product.bias.operand != no_operand) addresses.bias = sample_address(product.bias.alignment);
  return addresses;
}

void set_addresses(const Library& library, MatmulDescriptor operation, const Product& product,
                   const Addresses& addresses) {
  if (product.first_scale.operand != no_operand)
    set(library, operation, DescriptorAttribute::a_scale_pointer, addresses.first_scale);
  if (product.second_scale.operand != no_operand)
    set(library, operation, DescriptorAttribute::b_scale_pointer, addresses.second_scale);
  if (product.bias.operand != no_operand)
    set(library, operation, DescriptorAttribute::bias_pointer, addresses.bias);
}

Owned<MatmulDescriptor> make_operation(const Library& library, const Product& product,
                                       const Addresses& addresses) {
  MatmulDescriptor created = nullptr;
  check(library, library.api.cublasLtMatmulDescCreate(&created, product.compute, product.scale),
        "cublasLtMatmulDescCreate");
  Owned<MatmulDescriptor> operation(created, {library.api.cublasLtMatmulDescDestroy});
  const auto transposition = [](const Matrix& matrix) {
    return matrix.is_transposed ? Transposition::transposed : Transposition::none;
  };
  set(library, created, DescriptorAttribute::transpose_a, transposition(product.first));
  set(library, created, DescriptorAttribute::transpose_b, transposition(product.second));
  if (product.has_fast_accumulation)
    set(library, created, DescriptorAttribute::fast_accumulation, std::int8_t{1});
  if (product.scale_mode != ScaleMode::tensor) {
    set(library, created, DescriptorAttribute::a_scale_mode, product.scale_mode);
    set(library, created, DescriptorAttribute::b_scale_mode, product.scale_mode);
  }
  set_epilogue(library, created, product);
  set_addresses(library, created, product, addresses);
  return operation;
}

Owned<MatrixLayout> make_layout(const Library& library, const Matrix& matrix,
                                std::int64_t batches) {
  MatrixLayout created = nullptr;
  check(library,
        library.api.cublasLtMatrixLayoutCreate(
            &created, matrix.type, static_cast<std::uint64_t>(matrix.rows),
            static_cast<std::uint64_t>(matrix.columns), matrix.leading),
        "cublasLtMatrixLayoutCreate");
  Owned<MatrixLayout> layout(created, {library.api.cublasLtMatrixLayoutDestroy});
  if (batches == 1) return layout;
  const auto count = static_cast<std::int32_t>(batches);
  check(library,
        library.api.cublasLtMatrixLayoutSetAttribute(created, LayoutAttribute::batch_count, &count,
                                                     sizeof count),
        "cublasLtMatrixLayoutSetAttribute");
  check(
      library,
      library.api.cublasLtMatrixLayoutSetAttribute(
          created, LayoutAttribute::batch_stride, &matrix.batch_stride, sizeof matrix.batch_stride),
      "cublasLtMatrixLayoutSetAttribute");
  return layout;
}

Layouts::Layouts(const Library& library, const Product& product)
    : first(make_layout(library, product.first, product.batches)),
      second(make_layout(library, product.second, product.batches)),
      c(make_layout(library, product.c, product.batches)),
      out(make_layout(library, product.out, product.batches)) {}

// Without the restriction, parts of a split k may be added up in out's type.
Owned<MatmulPreference> make_preference(const Library& library, const Product& product,
                                        std::size_t most_workspace_bytes) {
  MatmulPreference created = nullptr;
  check(library, library.api.cublasLtMatmulPreferenceCreate(&created),
        "cublasLtMatmulPreferenceCreate");
  Owned<MatmulPreference> preference(created, {library.api.cublasLtMatmulPreferenceDestroy});
  const auto set = [&]<class Value>(PreferenceAttribute attribute, Value value) {
    check(
        library,
        library.api.cublasLtMatmulPreferenceSetAttribute(created, attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
  };
  set(PreferenceAttribute::most_workspace_bytes, std::uint64_t{most_workspace_bytes});
  set(PreferenceAttribute::reduction_schemes,
      static_cast<std::uint32_t>(ReductionScheme::compute_type));
  set(PreferenceAttribute::alignment_a, product.first.alignment);
  set(PreferenceAttribute::alignment_b, product.second.alignment);
  set(PreferenceAttribute::alignment_c, product.c.alignment);
  set(PreferenceAttribute::alignment_d, product.out.alignment);
  return preference;
}

}  // namespace gemmery::cublaslt
