// SPDX-License-Identifier: Apache-2.0
// Compares the library's declarations of cuBLASLt with the vendor's header, if that is installed.
#include "providers/cublaslt/cublaslt_api.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace gemmery::cublaslt {
namespace {

template <class Ours, class Theirs>
struct is_same_call : std::false_type {};
template <class R, class... P, class S, class... Q>
requires(sizeof...(P) == sizeof...(Q)) struct is_same_call<R (*)(P...), S (*)(Q...)>
    : std::bool_constant<((sizeof(P) == sizeof(Q) &&
                           std::is_pointer_v<P> == std::is_pointer_v<Q>)&&... &&
                          (sizeof(R) == sizeof(S)))> {
};

TEST(CublasltApi, every_function_is_called_as_the_vendor_declares_it) {
#define GEMMERY_COMPARE(name, result, parameters) \
  EXPECT_TRUE((is_same_call<decltype(Api::name), decltype(&::name)>::value)) << #name;
  GEMMERY_CUBLASLT_FUNCTIONS(GEMMERY_COMPARE)
#undef GEMMERY_COMPARE
}

#define GEMMERY_SAME_FIELD(ours, field, theirs, their_field)                 \
  EXPECT_EQ(offsetof(ours, field), offsetof(theirs, their_field)) << #field; \
  EXPECT_EQ(sizeof(ours::field), sizeof(theirs::their_field)) << #field

TEST(CublasltApi, structures_have_the_layout_of_the_vendor) {
  EXPECT_EQ(sizeof(AlgorithmData), sizeof(cublasLtMatmulAlgo_t));
  EXPECT_EQ(alignof(AlgorithmData), alignof(cublasLtMatmulAlgo_t));
  EXPECT_EQ(sizeof(HeuristicResult), sizeof(cublasLtMatmulHeuristicResult_t));
  GEMMERY_SAME_FIELD(HeuristicResult, algorithm, cublasLtMatmulHeuristicResult_t, algo);
  GEMMERY_SAME_FIELD(HeuristicResult, workspace_bytes, cublasLtMatmulHeuristicResult_t,
                     workspaceSize);
  GEMMERY_SAME_FIELD(HeuristicResult, state, cublasLtMatmulHeuristicResult_t, state);
  GEMMERY_SAME_FIELD(HeuristicResult, waves, cublasLtMatmulHeuristicResult_t, wavesCount);
}

#define GEMMERY_SAME_VALUE(ours, theirs) \
  EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs)) << #ours

TEST(CublasltApi, types_and_statuses_are_those_of_the_vendor) {
  GEMMERY_SAME_VALUE(Result::success, CUBLAS_STATUS_SUCCESS);
  GEMMERY_SAME_VALUE(Result::not_initialized, CUBLAS_STATUS_NOT_INITIALIZED);
  GEMMERY_SAME_VALUE(Result::alloc_failed, CUBLAS_STATUS_ALLOC_FAILED);
  GEMMERY_SAME_VALUE(Result::invalid_value, CUBLAS_STATUS_INVALID_VALUE);
  GEMMERY_SAME_VALUE(Result::arch_mismatch, CUBLAS_STATUS_ARCH_MISMATCH);
  GEMMERY_SAME_VALUE(Result::mapping_error, CUBLAS_STATUS_MAPPING_ERROR);
  GEMMERY_SAME_VALUE(Result::execution_failed, CUBLAS_STATUS_EXECUTION_FAILED);
  GEMMERY_SAME_VALUE(Result::internal_error, CUBLAS_STATUS_INTERNAL_ERROR);
  GEMMERY_SAME_VALUE(Result::not_supported, CUBLAS_STATUS_NOT_SUPPORTED);
  GEMMERY_SAME_VALUE(Result::license_error, CUBLAS_STATUS_LICENSE_ERROR);
  GEMMERY_SAME_VALUE(DataType::f32, CUDA_R_32F);
  GEMMERY_SAME_VALUE(DataType::f64, CUDA_R_64F);
  GEMMERY_SAME_VALUE(DataType::f16, CUDA_R_16F);
  GEMMERY_SAME_VALUE(DataType::i8, CUDA_R_8I);
  GEMMERY_SAME_VALUE(DataType::i32, CUDA_R_32I);
  GEMMERY_SAME_VALUE(DataType::bf16, CUDA_R_16BF);
  GEMMERY_SAME_VALUE(DataType::e4m3, CUDA_R_8F_E4M3);
  GEMMERY_SAME_VALUE(DataType::e5m2, CUDA_R_8F_E5M2);
  GEMMERY_SAME_VALUE(ComputeType::f16, CUBLAS_COMPUTE_16F);
  GEMMERY_SAME_VALUE(ComputeType::f32, CUBLAS_COMPUTE_32F);
  GEMMERY_SAME_VALUE(ComputeType::f64, CUBLAS_COMPUTE_64F);
  GEMMERY_SAME_VALUE(ComputeType::i32, CUBLAS_COMPUTE_32I);
  GEMMERY_SAME_VALUE(ComputeType::f32_fast_f16, CUBLAS_COMPUTE_32F_FAST_16F);
  GEMMERY_SAME_VALUE(ComputeType::f32_fast_bf16, CUBLAS_COMPUTE_32F_FAST_16BF);
  GEMMERY_SAME_VALUE(ComputeType::f32_fast_tf32, CUBLAS_COMPUTE_32F_FAST_TF32);
#if CUBLAS_VERSION >= 120900
  GEMMERY_SAME_VALUE(ComputeType::f32_emulated_bf16x9, CUBLAS_COMPUTE_32F_EMULATED_16BFX9);
#endif
  GEMMERY_SAME_VALUE(Transposition::none, CUBLAS_OP_N);
  GEMMERY_SAME_VALUE(Transposition::transposed, CUBLAS_OP_T);
}

TEST(CublasltApi, attributes_are_those_of_the_vendor) {
  using Descriptor = DescriptorAttribute;
  GEMMERY_SAME_VALUE(Descriptor::transpose_a, CUBLASLT_MATMUL_DESC_TRANSA);
  GEMMERY_SAME_VALUE(Descriptor::transpose_b, CUBLASLT_MATMUL_DESC_TRANSB);
  GEMMERY_SAME_VALUE(Descriptor::epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  GEMMERY_SAME_VALUE(Descriptor::bias_pointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  GEMMERY_SAME_VALUE(Descriptor::bias_batch_stride, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE);
  GEMMERY_SAME_VALUE(Descriptor::bias_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  GEMMERY_SAME_VALUE(Descriptor::a_scale_pointer, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
  GEMMERY_SAME_VALUE(Descriptor::b_scale_pointer, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
#if CUBLAS_VERSION >= 120900
  GEMMERY_SAME_VALUE(Descriptor::a_scale_mode, CUBLASLT_MATMUL_DESC_A_SCALE_MODE);
  GEMMERY_SAME_VALUE(Descriptor::b_scale_mode, CUBLASLT_MATMUL_DESC_B_SCALE_MODE);
  GEMMERY_SAME_VALUE(ScaleMode::tensor, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F);
  GEMMERY_SAME_VALUE(ScaleMode::outer_vector, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
#endif
  GEMMERY_SAME_VALUE(Descriptor::fast_accumulation, CUBLASLT_MATMUL_DESC_FAST_ACCUM);
  GEMMERY_SAME_VALUE(LayoutAttribute::batch_count, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  GEMMERY_SAME_VALUE(LayoutAttribute::batch_stride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  using Preference = PreferenceAttribute;
  GEMMERY_SAME_VALUE(Preference::most_workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  GEMMERY_SAME_VALUE(Preference::reduction_schemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  GEMMERY_SAME_VALUE(Preference::alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  GEMMERY_SAME_VALUE(Preference::alignment_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  GEMMERY_SAME_VALUE(Preference::alignment_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  GEMMERY_SAME_VALUE(Preference::alignment_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
}

TEST(CublasltApi, configurations_are_those_of_the_vendor) {
  using Config = ConfigAttribute;
  GEMMERY_SAME_VALUE(Config::id, CUBLASLT_ALGO_CONFIG_ID);
  GEMMERY_SAME_VALUE(Config::tile, CUBLASLT_ALGO_CONFIG_TILE_ID);
  GEMMERY_SAME_VALUE(Config::splits, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  GEMMERY_SAME_VALUE(Config::reduction_scheme, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  GEMMERY_SAME_VALUE(Config::swizzle, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING);
  GEMMERY_SAME_VALUE(Config::custom_option, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION);
  GEMMERY_SAME_VALUE(Config::stages, CUBLASLT_ALGO_CONFIG_STAGES_ID);
  GEMMERY_SAME_VALUE(Config::inner_shape, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID);
  GEMMERY_SAME_VALUE(Config::cluster_shape, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
  GEMMERY_SAME_VALUE(CapabilityAttribute::numerical_flags, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS);
  EXPECT_EQ(tensor_core_flags, CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK);
  using Scheme = ReductionScheme;
  GEMMERY_SAME_VALUE(Scheme::none, CUBLASLT_REDUCTION_SCHEME_NONE);
  GEMMERY_SAME_VALUE(Scheme::in_place, CUBLASLT_REDUCTION_SCHEME_INPLACE);
  GEMMERY_SAME_VALUE(Scheme::compute_type, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  GEMMERY_SAME_VALUE(Scheme::output_type, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
  GEMMERY_SAME_VALUE(Epilogue::plain, CUBLASLT_EPILOGUE_DEFAULT);
  GEMMERY_SAME_VALUE(Epilogue::relu, CUBLASLT_EPILOGUE_RELU);
  GEMMERY_SAME_VALUE(Epilogue::bias, CUBLASLT_EPILOGUE_BIAS);
}

}  // namespace
}  // namespace gemmery::cublaslt
#else
TEST(CublasltApi, is_compared_where_the_toolkit_is_installed) {
  GTEST_SKIP() << "no cublasLt.h here";
}
#endif
