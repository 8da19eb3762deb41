// SPDX-License-Identifier: Apache-2.0
// Describes a problem for cuBLASLt. Its matrices are column major, so a row-major out is computed
// as its transpose: out' = B' A'.
#include "cublaslt_peer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include <cublasLt.h>

#include "device_clock.hpp"

namespace gemmery::peers {
namespace {

#define GEMMERY_CUBLASLT_FUNCTIONS(X)     \
  X(cublasLtCreate)                       \
  X(cublasLtGetVersion)                   \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulAlgoConfigGetAttribute) \
  X(cublasLtMatmul)

struct Api {
#define GEMMERY_MEMBER(name) decltype(&::name) name = nullptr;
  GEMMERY_CUBLASLT_FUNCTIONS(GEMMERY_MEMBER)
#undef GEMMERY_MEMBER
  cublasLtHandle_t handle = nullptr;

  Api() {
    void* const library = open_library({"libcublasLt.so.13", "libcublasLt.so.12",
                                        "/usr/local/cuda/lib64/libcublasLt.so.13",
                                        "/usr/local/cuda/lib64/libcublasLt.so.12"});
#define GEMMERY_RESOLVE(name) name = reinterpret_cast<decltype(name)>(find_symbol(library, #name));
    GEMMERY_CUBLASLT_FUNCTIONS(GEMMERY_RESOLVE)
#undef GEMMERY_RESOLVE
    if (cublasLtCreate(&handle) != CUBLAS_STATUS_SUCCESS)
      throw std::runtime_error("cublasLtCreate failed");
  }
};

const Api& api() {
  static const Api* const table = new Api;
  return *table;
}

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + " returned " +
                             std::to_string(static_cast<int>(status)));
}

cudaDataType data_type(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return CUDA_R_64F;
    case DType::float32:
      return CUDA_R_32F;
    case DType::float16:
      return CUDA_R_16F;
    case DType::bfloat16:
      return CUDA_R_16BF;
    case DType::float8_e4m3fn:
      return CUDA_R_8F_E4M3;
    case DType::float8_e5m2:
      return CUDA_R_8F_E5M2;
    case DType::int8:
      return CUDA_R_8I;
    case DType::int32:
      return CUDA_R_32I;
    default:
      throw std::runtime_error("cuBLASLt has no type for " + std::string(name(dtype)));
  }
}

struct Compute {
  cublasComputeType_t type;
  cudaDataType scale;
  const char* name;
};

// The compute type for a problem's math. Without math, f32 is computed in f32; TF32 is used only if
// the problem requests it. Split f32 competes with f32, fp8_fast with fast accumulation.
struct MathRow {
  Math math;
  cublasComputeType_t type;
  const char* name;
};
constexpr std::array math_rows{
    MathRow{Math::native, CUBLAS_COMPUTE_32F, "CUBLAS_COMPUTE_32F"},
    MathRow{Math::tf32, CUBLAS_COMPUTE_32F_FAST_TF32, "CUBLAS_COMPUTE_32F_FAST_TF32"},
    MathRow{Math::tf32x3, CUBLAS_COMPUTE_32F, "CUBLAS_COMPUTE_32F"},
    MathRow{Math::bf16x3, CUBLAS_COMPUTE_32F, "CUBLAS_COMPUTE_32F"},
    MathRow{Math::bf16x6, CUBLAS_COMPUTE_32F, "CUBLAS_COMPUTE_32F"},
    MathRow{Math::bf16x9, CUBLAS_COMPUTE_32F, "CUBLAS_COMPUTE_32F"},
    MathRow{Math::fp8_fast, CUBLAS_COMPUTE_32F, "CUBLAS_COMPUTE_32F, fast accumulation"},
    MathRow{Math::fp8_promoted, CUBLAS_COMPUTE_32F, "CUBLAS_COMPUTE_32F"},
};

Compute compute_of(const GemmProblem& problem) {
  if (problem.accumulator == DType::float64)
    return {CUBLAS_COMPUTE_64F, CUDA_R_64F, "CUBLAS_COMPUTE_64F (DMMA where the device has it)"};
  if (problem.accumulator == DType::int32) {
    const bool is_exact = problem.out.dtype == DType::int32;
    return {CUBLAS_COMPUTE_32I, is_exact ? CUDA_R_32I : CUDA_R_32F, "CUBLAS_COMPUTE_32I"};
  }
  if (problem.accumulator == DType::float16)
    return {CUBLAS_COMPUTE_16F, CUDA_R_16F, "CUBLAS_COMPUTE_16F"};
  const auto* const row = std::ranges::find(math_rows, problem.math, &MathRow::math);
  if (row == math_rows.end())
    throw std::runtime_error("no counterpart of math=" + std::string(name(problem.math)));
  return {row->type, CUDA_R_32F, row->name};
}

// A matrix in memory as cuBLASLt reads it: columns of `rows` elements, `leading` apart.
struct Spelling {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t leading;
  bool is_transposed;  // relative to the matrix that is meant
};

// `wants_transpose`: cuBLASLt needs the transpose of the operand.
Spelling spell(const MatrixType& matrix, std::int64_t rows, std::int64_t columns,
               bool wants_transpose) {
  const Layout layout = layout_of(matrix, rows, columns);
  if (layout == Layout::strided) throw std::runtime_error("a matrix with no unit stride");
  const bool is_row = layout == Layout::row;
  const std::int64_t length = is_row ? columns : rows;
  const std::int64_t stride = is_row ? matrix.row_stride : matrix.column_stride;
  const std::int64_t leading = stride == 0 ? length : stride;
  if (leading < length)
    throw std::runtime_error("a leading dimension below the length of its rows");
  // Row-major memory read by columns is the transpose of the operand.
  return {length, is_row ? rows : columns, leading, is_row != wants_transpose};
}

// A number in the type that cuBLASLt scales with.
struct Scalar {
  alignas(8) std::array<std::byte, 8> bytes{};

  template <class T>
  void hold(T value) {
    std::memcpy(bytes.data(), &value, sizeof value);
  }
  void set(cudaDataType type, double value) {
    if (type == CUDA_R_64F) hold(value);
    if (type == CUDA_R_32F) hold(static_cast<float>(value));
    if (type == CUDA_R_32I) hold(static_cast<std::int32_t>(value));
    if (type == CUDA_R_16F) hold(static_cast<std::uint16_t>(value == 0 ? 0 : 0x3c00));  // 0 or 1
  }
};

}  // namespace

struct CublasLtPeer::State {
  Compute compute{};
  bool swaps = false;  // out is row major: B is the first operand
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr;
  cublasLtMatrixLayout_t second = nullptr;
  cublasLtMatrixLayout_t addend = nullptr;
  cublasLtMatrixLayout_t out = nullptr;
  cublasLtMatmulHeuristicResult_t choice{};

  void set_transposed(cublasLtMatmulDescAttributes_t attribute, bool is_transposed) const {
    const cublasOperation_t value = is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(api().cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }

  static cublasLtMatrixLayout_t layout(const MatrixType& matrix, const Spelling& spelling,
                                       std::int64_t batches) {
    cublasLtMatrixLayout_t result = nullptr;
    check(api().cublasLtMatrixLayoutCreate(
              &result, data_type(matrix.dtype), static_cast<std::uint64_t>(spelling.rows),
              static_cast<std::uint64_t>(spelling.columns), spelling.leading),
          "cublasLtMatrixLayoutCreate");
    if (batches > 1) {
      const auto count = static_cast<std::int32_t>(batches);
      const std::int64_t stride = matrix.batch_stride;
      check(api().cublasLtMatrixLayoutSetAttribute(result, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                   &count, sizeof count),
            "batch count");
      check(api().cublasLtMatrixLayoutSetAttribute(
                result, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
            "batch stride");
    }
    return result;
  }
};

CublasLtPeer::CublasLtPeer(const GemmArguments& arguments, std::size_t workspace_bytes)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  const GemmProblem& p = arguments.problem();
  s.compute = compute_of(p);
  check(api().cublasLtMatmulDescCreate(&s.operation, s.compute.type, s.compute.scale),
        "cublasLtMatmulDescCreate");
  s.swaps = layout_of(p.out, p.m, p.n) == Layout::row;

  const Spelling a = spell(p.a, p.m, p.k, s.swaps);
  const Spelling b = spell(p.b, p.k, p.n, s.swaps);
  const Spelling out = spell(p.out, p.m, p.n, s.swaps);
  if (out.is_transposed) throw std::runtime_error("an out that is neither row nor column major");
  if (p.math == Math::fp8_fast) {
    const std::int8_t is_fast = 1;
    check(api().cublasLtMatmulDescSetAttribute(s.operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                                               &is_fast, sizeof is_fast),
          "fast accumulation");
  }
  const cublasLtMatrixLayout_t layout_a = State::layout(p.a, a, p.l);
  const cublasLtMatrixLayout_t layout_b = State::layout(p.b, b, p.l);
  s.first = s.swaps ? layout_b : layout_a;
  s.second = s.swaps ? layout_a : layout_b;
  s.set_transposed(CUBLASLT_MATMUL_DESC_TRANSA, (s.swaps ? b : a).is_transposed);
  s.set_transposed(CUBLASLT_MATMUL_DESC_TRANSB, (s.swaps ? a : b).is_transposed);
  s.out = State::layout(p.out, out, p.l);
  s.addend = s.out;
  if (bit_width(p.out.dtype) == 8 && is_floating(p.out.dtype)) {
    MatrixType wide = p.out;  // with fp8 results cuBLASLt requires a C of 16 bits, read or not
    wide.dtype = DType::bfloat16;
    s.addend = State::layout(wide, out, p.l);
  }
  if (p.c) {
    const Spelling c = spell(*p.c, p.m, p.n, s.swaps);
    if (c.is_transposed || p.c->row_stride == 0 || p.c->column_stride == 0)
      throw std::runtime_error("a C of another layout than out");
    s.addend = State::layout(*p.c, c, p.l);
  }

  cublasLtMatmulPreference_t preference = nullptr;
  check(api().cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  check(api().cublasLtMatmulPreferenceSetAttribute(preference,
                                                   CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                   &workspace_bytes, sizeof workspace_bytes),
        "workspace");
  const auto set_alignment = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                                 const MatrixType& matrix) {
    // The heuristic assumes an alignment of 256 bytes by default. Operands here have what their
    // problem states if that is below 16, otherwise 256.
    const std::uint32_t bytes = matrix.alignment < 16 ? matrix.alignment : 256;
    check(api().cublasLtMatmulPreferenceSetAttribute(preference, attribute, &bytes, sizeof bytes),
          "alignment");
  };
  set_alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, s.swaps ? p.b : p.a);
  set_alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, s.swaps ? p.a : p.b);
  set_alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.c ? *p.c : p.out);
  set_alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.out);
  int found = 0;
  const cublasStatus_t status =
      api().cublasLtMatmulAlgoGetHeuristic(api().handle, s.operation, s.first, s.second, s.addend,
                                           s.out, preference, 1, &s.choice, &found);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0)
    throw std::runtime_error("cuBLASLt has no algorithm for this problem");
}

CublasLtPeer::~CublasLtPeer() = default;  // descriptors live as long as the process; there are few

void CublasLtPeer::run(const GemmArguments& arguments, void* workspace, void* stream) const {
  const State& s = *state_;
  Scalar alpha;
  Scalar beta;
  alpha.set(s.compute.scale, arguments.alpha());
  beta.set(s.compute.scale, arguments.beta());
  const void* const a = arguments.a().data();
  const void* const b = arguments.b().data();
  void* const out = arguments.out().data();
  const void* const addend = arguments.c() ? arguments.c()->data() : out;
  check(api().cublasLtMatmul(api().handle, s.operation, &alpha, s.swaps ? b : a, s.first,
                             s.swaps ? a : b, s.second, &beta, addend, s.addend, out, s.out,
                             &s.choice.algo, workspace, s.choice.workspaceSize,
                             static_cast<cudaStream_t>(stream)),
        "cublasLtMatmul");
}

std::string CublasLtPeer::compute() const { return state_->compute.name; }

std::string CublasLtPeer::algorithm() const {
  const auto read = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
    std::uint32_t value = 0;
    std::size_t written = 0;
    api().cublasLtMatmulAlgoConfigGetAttribute(&state_->choice.algo, attribute, &value,
                                               sizeof value, &written);
    return std::to_string(value);
  };
  return "id " + read(CUBLASLT_ALGO_CONFIG_ID) + " tile " + read(CUBLASLT_ALGO_CONFIG_TILE_ID) +
         " stages " + read(CUBLASLT_ALGO_CONFIG_STAGES_ID) + " split-k " +
         read(CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
}

std::string CublasLtPeer::version() { return std::to_string(api().cublasLtGetVersion()); }

}  // namespace gemmery::peers
