// SPDX-License-Identifier: Apache-2.0
// Problems as cuBLASLt reads them, and what is refused, by name.
#include "providers/cublaslt/product.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "kernel/plain_gemm.hpp"
#include "providers/cublaslt/descriptors.hpp"
#include "providers/cublaslt/library.hpp"

namespace gemmery::cublaslt {
namespace {

Status described(const std::string& line, Product& product) {
  const GemmProblem problem = parse_problem(line).problem;
  return describe(*kernel::AsFamiliesSee(problem), product);
}

struct Refusal {
  const char* line;
  const char* part;
};

TEST(CublasltProduct, of_a_row_major_out_is_swapped) {
  Product product;
  ASSERT_TRUE(described("gemm 5x7x11 a=bf16 b=bf16:c", product));
  EXPECT_TRUE(product.swaps);
  // B is column major (k x n): its memory, read by columns, is B, and B' is needed.
  EXPECT_TRUE(product.first.is_transposed);
  EXPECT_EQ(product.first.rows, 11);
  EXPECT_EQ(product.first.columns, 7);
  EXPECT_EQ(product.first.leading, 11);
  EXPECT_FALSE(product.second.is_transposed);
  EXPECT_EQ(product.second.rows, 11);
  EXPECT_EQ(product.second.columns, 5);
  EXPECT_EQ(product.out.rows, 7);
  EXPECT_EQ(product.out.columns, 5);
  EXPECT_EQ(product.out.leading, 7);
  EXPECT_FALSE(product.has_c);
}

TEST(CublasltProduct, of_a_column_major_out_is_as_given) {
  Product product;
  ASSERT_TRUE(
      described("gemm 5x7x11x3 a=f32 b=f32/ld=9/batch=200 out=f32:c/ld=6/batch=64", product));
  EXPECT_FALSE(product.swaps);
  EXPECT_TRUE(product.first.is_transposed);
  EXPECT_TRUE(product.second.is_transposed);
  EXPECT_EQ(product.second.leading, 9);
  EXPECT_EQ(product.second.batch_stride, 200);
  EXPECT_EQ(product.out.leading, 6);
  EXPECT_EQ(product.batches, 3);
  EXPECT_EQ(product.out.span(3), 2 * 64 + 6 * 6 + 5);
}

TEST(CublasltProduct, has_the_compute_type_of_the_math) {
  struct Case {
    const char* line;
    ComputeType compute;
    DataType scale;
    bool is_fast;
  };
  const Case cases[] = {
      {"gemm 16x16x16 a=f32", ComputeType::f32, DataType::f32, false},
      {"gemm 16x16x16 a=tf32", ComputeType::f32_fast_tf32, DataType::f32, false},
      {"gemm 16x16x16 a=f32 math=bf16x9", ComputeType::f32_emulated_bf16x9, DataType::f32, false},
      {"gemm 16x16x16 a=f64", ComputeType::f64, DataType::f64, false},
      {"gemm 16x16x16 a=f16 acc=f16", ComputeType::f16, DataType::f16, false},
      {"gemm 16x16x16 a=int8 out=int32", ComputeType::i32, DataType::i32, false},
      {"gemm 16x16x16 a=e4m3 b=e5m2:c out=bf16", ComputeType::f32, DataType::f32, false},
      {"gemm 16x16x16 a=e4m3 b=e4m3:c out=bf16 math=fp8_fast", ComputeType::f32, DataType::f32,
       true},
  };
  for (const Case& one : cases) {
    Product product;
    const Status status = described(one.line, product);
    ASSERT_TRUE(status) << one.line << ": " << status.error();
    EXPECT_EQ(product.compute, one.compute) << one.line;
    EXPECT_EQ(product.scale, one.scale) << one.line;
    EXPECT_EQ(product.has_fast_accumulation, one.is_fast) << one.line;
  }
}

TEST(CublasltProduct, reads_the_epilogues_that_cublaslt_has) {
  struct Case {
    const char* fields;
    Activation activation;
    double alpha, beta;
    bool has_c, has_bias;
  };
  const Case cases[] = {
      {R"_(epilogue="D = accum + bias" bias=bf16[n])_", Activation::none, 1, 1, false, true},
      {R"_(epilogue="D = 2 * accum + bias + 0.5 * R" bias=bf16[n] R=bf16)_", Activation::none, 2,
       0.5, true, true},
      {R"_(epilogue="D = R - accum" R=bf16)_", Activation::none, -1, 1, true, false},
      {R"_(epilogue="D = relu(accum + bias)" bias=bf16[n])_", Activation::relu, 1, 1, false, true},
      {R"_(epilogue="D = fma(s, accum, R)" s=f32:scalar R=bf16)_", Activation::none, 1, 1, true,
       false},
  };
  for (const Case& one : cases) {
    Product product;
    const Status status = described("gemm 16x32x16 a=bf16 " + std::string(one.fields), product);
    ASSERT_TRUE(status) << one.fields << ": " << status.error();
    EXPECT_EQ(product.epilogue.activation, one.activation) << one.fields;
    EXPECT_EQ(product.epilogue.alpha.constant, one.alpha) << one.fields;
    EXPECT_EQ(product.has_c, one.has_c) << one.fields;
    if (one.has_c) {
      EXPECT_EQ(product.epilogue.beta.constant, one.beta) << one.fields;
    }
    EXPECT_EQ(product.bias.operand != no_operand, one.has_bias) << one.fields;
  }
}

TEST(CublasltProduct, of_float8_to_float32_has_a_bias_of_bfloat16) {
  Product product;
  const Status status = described(
      R"_(gemm 16x32x16 a=e4m3 b=e4m3:c out=f32 epilogue="D = accum + bias" bias=bf16[n])_",
      product);
  ASSERT_TRUE(status) << status.error();
  EXPECT_EQ(product.bias.type, DataType::bf16);
}

TEST(CublasltProduct, has_the_scales_of_tensors_and_of_rows) {
  Product product;
  const std::string line = "gemm 16x32x48 a=e4m3 b=e4m3:c out=bf16 ";
  Status status = described(line + "scale_a=f32[tensor] scale_b=f32[tensor]", product);
  ASSERT_TRUE(status) << status.error();
  EXPECT_EQ(product.scale_mode, ScaleMode::tensor);
  EXPECT_NE(product.first_scale.operand, no_operand);
  EXPECT_NE(product.second_scale.operand, no_operand);
  EXPECT_TRUE(product.epilogue.alpha.is_guarded);
  const std::string of_rows = line + "scale_a=f32[row] scale_b=f32[row] c=bf16 beta=1";
  status = described(of_rows, product);
  ASSERT_TRUE(status) << status.error();
  EXPECT_EQ(product.scale_mode, ScaleMode::outer_vector);
  EXPECT_TRUE(product.has_c);
  EXPECT_TRUE(check_scalars(product, 1, 0)) << "the program does not read C then";
  // out is row major, so that B is the first operand.
  const GemmProblem problem = parse_problem(of_rows).problem;
  const kernel::AsFamiliesSee seen(problem);
  const auto& operands = rules_of((*seen).epilogue).operands;
  EXPECT_EQ(operands[static_cast<std::size_t>(product.first_scale.operand)].name, "scale_b");
  for (const char* const scales : {"scale_a=f32[row]", "scale_a=f32[tensor] scale_b=f32[row]"}) {
    EXPECT_NE(described(line + scales, product).error().find("scales: expected one value"),
              std::string::npos)
        << scales;
  }
}

TEST(CublasltProduct, refuses_by_name_what_cublaslt_has_not) {
  const Refusal refusals[] = {
      {"gemm 16x16x16 a=f16 b=bf16 out=f32", "types: expected a combination"},
      {"gemm 16x16x16 a=e5m2 out=f32", "types: "},
      {"gemm 16x16x16 a=e4m3 out=e4m3", "types: "},
      {"gemm 16x16x16 a=int8 out=int8", "types: "},
      {"gemm 16x16x16 a=uint8 b=int8 out=int32", "types: "},
      {"gemm 16x16x16 a=f32 math=tf32x3", "math tf32x3"},
      {"gemm 0x16x16 a=f32", "M: expected 1 to"},
      {"gemm 16x16x0 a=f32", "K: expected 1 to"},
      {"gemm 16x16x16 a=f32 c=f32:c beta=1", "C: expected the layout of out"},
      {"gemm 16x16x16 a=bf16 c=f32 beta=1", "C: expected the type of out"},
      {R"_(gemm 16x32x16 a=bf16 epilogue="D = accum + b1" b1=bf16[m])_",
       "epilogue operand b1: expected a vector along the contiguous dimension of out"},
      {R"_(gemm 16x32x16 a=bf16 epilogue="D = accum + b1" b1=f32[n])_",
       "epilogue operand b1: expected bfloat16"},
      {R"_(gemm 16x32x16 a=bf16 epilogue="D = accum + R" R=bf16:c)_",
       "epilogue operand R: expected the layout of out"},
      {R"_(gemm 16x16x16 a=int8 out=int32 epilogue="D = accum + b1" b1=int32[n])_",
       "epilogue: expected the default program beside integers"},
      {R"_(gemm 16x16x16 a=f32 epilogue="D = relu(accum)")_", "gives NaN or 0 for NaN"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = where(accum > 0, accum, 0)")_", "node"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = gelu_tanh(accum)")_", "GELU is further from it"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = gelu(accum)")_", "GELU is further from it"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = silu(accum)")_", "node 1: silu"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = accum * accum")_", "node"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = accum + accum")_", "node"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = accum + 1")_", "adds a matrix C and a bias"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = accum + s" s=f32:scalar)_", "adds no number"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = accum * s" s=f32[1])_",
       "scales: expected operands of float8, got bfloat16"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = accum + 2 * b1" b1=bf16[n])_", "which has no factor"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = accum + P + Q" P=bf16 Q=bf16)_", "one matrix"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = accum; peak = amax(accum)" peak=f32[1])_",
       "stores nothing beside D"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = accum; x = 2 * accum" x=bf16)_",
       "stores nothing beside D"},
      {R"_(gemm 16x16x16 a=bf16 epilogue="D = R" R=bf16)_", "begin with the accumulator"},
  };
  for (const Refusal& one : refusals) {
    Product product;
    const Status status = described(one.line, product);
    EXPECT_FALSE(status) << one.line;
    EXPECT_NE(status.error().find(one.part), std::string::npos)
        << one.line << ": " << status.error();
  }
}

TEST(CublasltProduct, refuses_strides_that_overlap_or_run_backwards) {
  GemmProblem problem = parse_problem("gemm 16x16x16x2 a=f32").problem;
  Product product;
  problem.a.row_stride = 0;
  EXPECT_EQ(describe(problem, product).error(),
            "A: expected rows or columns at least 16 elements apart, got 0");
  problem.a.row_stride = 2;
  problem.a.column_stride = 32;
  EXPECT_EQ(describe(problem, product).error(),
            "A: expected a matrix with a unit stride, got none");
  problem = parse_problem("gemm 16x16x16x2 a=f32").problem;
  problem.b.batch_stride = -256;
  EXPECT_EQ(describe(problem, product).error(),
            "B: expected a batch stride of at least 0, got -256");
}

// Where the vendor's library is. It checks the sizes of what it is given, and needs no GPU for
// that.
TEST(CublasltProduct, has_descriptors_that_the_vendors_library_accepts) {
  const FoundLibrary found = find_library();
  if (!found.library) GTEST_SKIP() << found.reason;
  for (const char* const line :
       {"gemm 48x32x16 a=bf16 b=bf16:c", "gemm 48x32x16x3 a=f32 b=f32/batch=0 c=f32 beta=1",
        "gemm 48x32x16 a=f64 out=f64:c", "gemm 48x32x16 a=f16 acc=f16",
        "gemm 48x32x16 a=int8 b=int8:c out=int32", "gemm 48x32x16 a=f32 math=bf16x9",
        "gemm 48x32x16 a=e4m3 b=e5m2:c out=bf16 math=fp8_fast",
        "gemm 48x32x16 a=e4m3 b=e4m3:c out=bf16 scale_a=f32[tensor] scale_b=f32[tensor]",
        "gemm 48x32x16 a=e4m3 b=e4m3:c out=bf16 scale_a=f32[row] scale_b=f32[row]",
        R"_(gemm 48x32x16x2 a=bf16 epilogue="D = accum + b1" b1=bf16[l,n])_",
        R"_(gemm 48x32x16 a=bf16 epilogue="D = relu(accum + b1)" b1=bf16[n])_"}) {
    Product product;
    ASSERT_TRUE(described(line, product)) << line;
    EXPECT_NO_THROW({
      const auto operation = make_operation(*found.library, product, sample_addresses(product));
      const Layouts layouts(*found.library, product);
      const auto preference = make_preference(*found.library, product, std::size_t{32} << 20);
      EXPECT_NE(operation, nullptr);
      EXPECT_NE(layouts.out, nullptr);
      EXPECT_NE(preference, nullptr);
    }) << line;
  }
}

TEST(CublasltProduct, refuses_numbers_that_it_cannot_express) {
  Product product;
  ASSERT_TRUE(described("gemm 16x16x16 a=int8 out=int32 c=int32 beta=1", product));
  EXPECT_TRUE(check_scalars(product, 1, 1));
  EXPECT_TRUE(check_scalars(product, 1, 0));
  EXPECT_FALSE(check_scalars(product, 0.5, 0));
  EXPECT_FALSE(check_scalars(product, 1, 2));
  ASSERT_TRUE(described("gemm 16x16x16 a=f16 acc=f16", product));
  EXPECT_TRUE(check_scalars(product, 0.5, 0));
  EXPECT_FALSE(check_scalars(product, 0.1, 0));
  ASSERT_TRUE(described("gemm 16x16x16 a=f32", product));
  EXPECT_TRUE(check_scalars(product, 0.1, 0));
  EXPECT_EQ(check_scalars(product, 0, 0).error(), "alpha: expected another number than 0, got 0");
  ASSERT_TRUE(described(R"_(gemm 16x16x16 a=f32 epilogue="D = accum + s * R" R=f32 s=f32:scalar)_",
                        product));
  EXPECT_FALSE(check_scalars(product, 1, 0));
}

}  // namespace
}  // namespace gemmery::cublaslt
