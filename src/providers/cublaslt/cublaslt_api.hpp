// SPDX-License-Identifier: Apache-2.0
// The part of cuBLASLt's API (12.4 and later) that is used here, written from its manual, so that
// no toolkit header is needed. A test compares every size, offset and value with the vendor's
// cublasLt.h where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemmery::cublaslt {

// --- opaque objects -----------------------------------------------------------------------------

using Handle = struct HandleObject*;                // cublasLtHandle_t
using MatmulDescriptor = struct MatmulObject*;      // cublasLtMatmulDesc_t
using MatrixLayout = struct LayoutObject*;          // cublasLtMatrixLayout_t
using MatmulPreference = struct PreferenceObject*;  // cublasLtMatmulPreference_t
using CudaStream = struct StreamObject*;            // cudaStream_t

// --- values -------------------------------------------------------------------------------------

enum class Result : int {  // cublasStatus_t
  success = 0,
  not_initialized = 1,
  alloc_failed = 3,
  invalid_value = 7,
  arch_mismatch = 8,
  mapping_error = 11,
  execution_failed = 13,
  internal_error = 14,
  not_supported = 15,
  license_error = 16,
};

enum class DataType : int {  // cudaDataType_t
  f32 = 0,
  f64 = 1,
  f16 = 2,
  i8 = 3,
  i32 = 10,
  bf16 = 14,
  e4m3 = 28,
  e5m2 = 29,
};

enum class ComputeType : int {  // cublasComputeType_t
  f16 = 64,
  f32 = 68,
  f64 = 70,
  i32 = 72,
  f32_fast_f16 = 74,
  f32_fast_bf16 = 75,
  f32_fast_tf32 = 77,
  f32_emulated_bf16x9 = 78,
};

enum class Transposition : std::int32_t { none = 0, transposed = 1 };  // cublasOperation_t

enum class Epilogue : std::uint32_t {  // cublasLtEpilogue_t; sums of bits
  plain = 1,
  relu = 2,
  bias = 4,
};

enum class DescriptorAttribute : int {  // cublasLtMatmulDescAttributes_t
  transpose_a = 3,
  transpose_b = 4,
  epilogue = 7,
  bias_pointer = 8,
  bias_batch_stride = 10,
  a_scale_pointer = 17,
  b_scale_pointer = 18,
  fast_accumulation = 25,
  bias_type = 26,
  a_scale_mode = 31,
  b_scale_mode = 32,
};

// What a scale of A or B is (cublasLtMatmulMatrixScale_t): one float32, or one for each row of A
// (column of B).
enum class ScaleMode : std::int32_t { tensor = 0, outer_vector = 3 };

enum class LayoutAttribute : int {  // cublasLtMatrixLayoutAttribute_t
  batch_count = 5,
  batch_stride = 6,
};

enum class PreferenceAttribute : int {  // cublasLtMatmulPreferenceAttributes_t
  most_workspace_bytes = 1,
  reduction_schemes = 3,
  alignment_a = 5,
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8,
};

// How the parts of a split k are added up (cublasLtReductionScheme_t): in out and its type, or in
// the workspace by the type of the accumulators or by out's.
enum class ReductionScheme : std::uint32_t {
  none = 0,
  in_place = 1,
  compute_type = 2,
  output_type = 4,
};

enum class ConfigAttribute : int {  // cublasLtMatmulAlgoConfigAttributes_t
  id = 0,                           // int32
  tile = 1,                         // uint32
  splits = 2,                       // int32
  reduction_scheme = 3,             // uint32
  swizzle = 4,                      // uint32
  custom_option = 5,                // uint32
  stages = 6,                       // uint32
  inner_shape = 7,                  // uint16
  cluster_shape = 8,                // uint16
};

enum class CapabilityAttribute : int {  // cublasLtMatmulAlgoCapAttributes_t
  numerical_flags = 15,                 // uint64
};
inline constexpr std::uint64_t tensor_core_flags = 0xfe;  // of the numerical flags

// --- structures ---------------------------------------------------------------------------------

struct AlgorithmData {  // cublasLtMatmulAlgo_t
  std::uint64_t words[8] = {};
};

struct HeuristicResult {  // cublasLtMatmulHeuristicResult_t
  AlgorithmData algorithm;
  std::size_t workspace_bytes = 0;
  Result state = Result::success;
  float waves = 0;
  int reserved[4] = {};
};

// --- functions ----------------------------------------------------------------------------------

// Name, result, parameters.
#define GEMMERY_CUBLASLT_FUNCTIONS(X)                                                             \
  X(cublasLtGetVersion, std::size_t, ())                                                          \
  X(cublasLtGetStatusString, const char*, (Result))                                               \
  X(cublasLtCreate, Result, (Handle*))                                                            \
  X(cublasLtMatmulDescCreate, Result, (MatmulDescriptor*, ComputeType, DataType))                 \
  X(cublasLtMatmulDescDestroy, Result, (MatmulDescriptor))                                        \
  X(cublasLtMatmulDescSetAttribute, Result,                                                       \
    (MatmulDescriptor, DescriptorAttribute, const void*, std::size_t))                            \
  X(cublasLtMatrixLayoutCreate, Result,                                                           \
    (MatrixLayout*, DataType, std::uint64_t, std::uint64_t, std::int64_t))                        \
  X(cublasLtMatrixLayoutDestroy, Result, (MatrixLayout))                                          \
  X(cublasLtMatrixLayoutSetAttribute, Result,                                                     \
    (MatrixLayout, LayoutAttribute, const void*, std::size_t))                                    \
  X(cublasLtMatmulPreferenceCreate, Result, (MatmulPreference*))                                  \
  X(cublasLtMatmulPreferenceDestroy, Result, (MatmulPreference))                                  \
  X(cublasLtMatmulPreferenceSetAttribute, Result,                                                 \
    (MatmulPreference, PreferenceAttribute, const void*, std::size_t))                            \
  X(cublasLtMatmulAlgoGetHeuristic, Result,                                                       \
    (Handle, MatmulDescriptor, MatrixLayout, MatrixLayout, MatrixLayout, MatrixLayout,            \
     MatmulPreference, int, HeuristicResult*, int*))                                              \
  X(cublasLtMatmulAlgoInit, Result,                                                               \
    (Handle, ComputeType, DataType, DataType, DataType, DataType, DataType, int, AlgorithmData*)) \
  X(cublasLtMatmulAlgoCheck, Result,                                                              \
    (Handle, MatmulDescriptor, MatrixLayout, MatrixLayout, MatrixLayout, MatrixLayout,            \
     const AlgorithmData*, HeuristicResult*))                                                     \
  X(cublasLtMatmulAlgoConfigSetAttribute, Result,                                                 \
    (AlgorithmData*, ConfigAttribute, const void*, std::size_t))                                  \
  X(cublasLtMatmulAlgoConfigGetAttribute, Result,                                                 \
    (const AlgorithmData*, ConfigAttribute, void*, std::size_t, std::size_t*))                    \
  X(cublasLtMatmulAlgoCapGetAttribute, Result,                                                    \
    (const AlgorithmData*, CapabilityAttribute, void*, std::size_t, std::size_t*))                \
  X(cublasLtMatmul, Result,                                                                       \
    (Handle, MatmulDescriptor, const void*, const void*, MatrixLayout, const void*, MatrixLayout, \
     const void*, const void*, MatrixLayout, void*, MatrixLayout, const AlgorithmData*, void*,    \
     std::size_t, CudaStream))

struct Api {
#define GEMMERY_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  GEMMERY_CUBLASLT_FUNCTIONS(GEMMERY_MEMBER)
#undef GEMMERY_MEMBER
};

}  // namespace gemmery::cublaslt
