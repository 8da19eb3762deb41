// SPDX-License-Identifier: Apache-2.0
// Batches by pointers: views, arguments, problems, and their lines.
#include <gemmery/arguments.hpp>
#include <gemmery/error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "operation/matrix.hpp"
#include "operation/overlap.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery {
namespace {

using tests::error_of;

constexpr std::int64_t batches = 3;

// Arrays of pointers whose elements are never read.
struct Arrays {
  std::vector<float> memory = std::vector<float>(4096);
  std::array<const void*, batches> a{&memory[0], &memory[512], &memory[128]};
  std::array<const void*, batches> b{&memory[1024], &memory[1024], &memory[1024]};
  std::array<const void*, batches> out{&memory[2048], &memory[3072], &memory[2560]};

  Tensor view(const std::array<const void*, batches>& pointers, std::int64_t rows,
              std::int64_t columns, int alignment = 16) const {
    return Tensor(PointerArray{pointers.data(), alignment}, DType::float32,
                  {batches, rows, columns});
  }
  Tensor view_a() const { return view(a, 4, 8); }
  Tensor view_b() const { return view(b, 8, 12); }
  Tensor view_out() const { return view(out, 4, 12); }
};

TEST(Pointers, make_a_view_of_rank_3) {
  const Arrays x;
  const Tensor view(PointerArray{x.a.data(), 8}, DType::float32, {batches, 4, 8}, {1, 6});
  EXPECT_TRUE(view.has_pointers());
  EXPECT_EQ(view.data(), x.a.data());
  EXPECT_EQ(view.stride(0), by_pointers);
  EXPECT_EQ(view.stride(1), 1);
  EXPECT_EQ(view.pointer_alignment(), 8);
  EXPECT_EQ(to_string(view), "float32 (3, 4, 8) strides (1, 6) by pointers aligned to 8 on cpu");
  const ByteRange range = byte_range(view);
  EXPECT_EQ(range.last - range.first, batches * sizeof(void*)) << "what the host knows of";
  EXPECT_FALSE(Tensor(&x.memory[0], DType::float32, {3, 4, 8}).has_pointers());
}

TEST(Pointers, promise_a_power_of_two_of_at_least_an_element) {
  for (const int alignment : {0, 2, 3, 12, -4}) {
    EXPECT_EQ(error_of([&] {
                Tensor(PointerArray{nullptr, alignment}, DType::float32, {1, 1, 1});
              }).operand(),
              "tensor")
        << alignment;
  }
  EXPECT_EQ(Tensor(PointerArray{nullptr, 256}, DType::float32, {1, 1, 1}).pointer_alignment(), 16);
}

TEST(Pointers, are_part_of_the_problem_and_of_its_line) {
  const Arrays x;
  const GemmArguments arguments(x.view_a(), x.view_b(), x.view_out());
  EXPECT_EQ(to_string(arguments.problem()),
            "gemm 4x12x8x3 a=f32/pointers b=f32/pointers out=f32/pointers");
  const GemmProblem strided = parse_problem("gemm 4x12x8x3 a=f32").problem;
  EXPECT_NE(arguments.problem(), strided);
  EXPECT_NE(hash_value(arguments.problem()), hash_value(strided));
  EXPECT_EQ(arguments.problem().bytes(), strided.bytes());
  const GemmArguments less(x.view(x.a, 4, 8, 4), x.view_b(), x.view_out());
  EXPECT_EQ(less.problem().a.alignment, 4);
}

TEST(Pointers, of_one_matrix_stay_pointers) {
  const Arrays x;
  const auto one = [](const void* const* pointer, std::int64_t rows, std::int64_t columns) {
    return Tensor(PointerArray{pointer}, DType::float32, {1, rows, columns});
  };
  const GemmArguments arguments(one(x.a.data(), 4, 8), one(x.b.data(), 8, 12),
                                one(x.out.data(), 4, 12));
  EXPECT_TRUE(arguments.problem().a.has_pointers());
  EXPECT_EQ(to_string(arguments.problem()),
            "gemm 4x12x8 a=f32/pointers b=f32/pointers out=f32/pointers");
}

TEST(Pointers, are_as_many_as_out_has_matrices) {
  Arrays x;
  const Tensor one(PointerArray{x.b.data()}, DType::float32, {1, 8, 12});
  EXPECT_EQ(error_of([&] { GemmArguments(x.view_a(), one, x.view_out()); }).operand(), "gemm: B");
  const Tensor c(PointerArray{x.b.data()}, DType::float32, {1, 1, 12});
  EXPECT_EQ(error_of([&] {
              GemmArguments(x.view_a(), x.view_b(), x.view_out(), {.c = c, .beta = 1});
            }).operand(),
            "gemm: C");
}

TEST(Pointers, mix_with_batches_one_stride_apart) {
  Arrays x;
  const Tensor weights(&x.memory[1024], DType::float32, {8, 12});
  const Tensor bias(PointerArray{x.b.data(), 4}, DType::float32, {batches, 1, 12});
  const GemmArguments arguments(x.view_a(), weights, x.view_out(), {.c = bias, .beta = 1});
  EXPECT_EQ(to_string(arguments.problem()),
            "gemm 4x12x8x3 a=f32/pointers b=f32/batch=0 out=f32/pointers "
            "c=f32[l,n]/pointers/align=4 beta=1");
}

TEST(Pointers, may_be_those_of_out_and_may_not_lie_in_it) {
  Arrays x;
  const GemmOptions in_place{.c = x.view_out(), .beta = 1};
  EXPECT_NO_THROW(GemmArguments(x.view_a(), x.view_b(), x.view_out(), in_place));
  const Tensor out(x.a.data(), DType::float32, {batches, 4, 12});  // never written
  EXPECT_EQ(error_of([&] { GemmArguments(x.view_a(), x.view_b(), out); }).operand(), "gemm: out");
  const Tensor rows_on_rows(PointerArray{x.out.data()}, DType::float32, {batches, 4, 12}, {8, 1});
  EXPECT_EQ(error_of([&] { GemmArguments(x.view_a(), x.view_b(), rows_on_rows); }).operand(),
            "gemm: out");
}

TEST(Pointers, need_an_array_at_a_multiple_of_8) {
  const Arrays x;
  for (const std::size_t offset : {std::size_t{4}, std::size_t{0}}) {
    const auto* const moved =
        offset == 0 ? nullptr : reinterpret_cast<const std::byte*>(x.a.data()) + offset;
    const Tensor a(PointerArray{reinterpret_cast<const void* const*>(moved)}, DType::float32,
                   {batches, 4, 8});
    EXPECT_EQ(error_of([&] { GemmArguments(a, x.view_b(), x.view_out()); }).operand(), "gemm: A");
  }
}

TEST(Pointers, can_be_exchanged) {
  Arrays x;
  GemmArguments arguments(x.view_a(), x.view_b(), x.view_out());
  const std::array<const void*, batches> others{&x.memory[64], &x.memory[64], &x.memory[64]};
  arguments.set_data("A", others.data());
  EXPECT_EQ(arguments.a().data(), others.data());
  EXPECT_TRUE(arguments.a().has_pointers());
}

TEST(Pointers, of_an_epilogue_are_for_what_is_not_reduced) {
  Arrays x;
  const auto bind = [&](const Tensor& result, const char* program) {
    GemmOptions options;
    options.epilogue = EpilogueArguments(program, {{"r", result}});
    return GemmArguments(x.view_a(), x.view_b(), x.view(x.out, 4, 12), options);
  };
  std::array<const void*, batches> others{&x.memory[64], &x.memory[192], &x.memory[320]};
  const Tensor full = x.view(others, 4, 12);
  EXPECT_TRUE(bind(full, "D = accum * r").problem().epilogue_operands[0].has_pointers());
  EXPECT_TRUE(bind(full, "D = accum; r = accum").problem().epilogue_operands[0].has_pointers());
  const Tensor rows = x.view(others, 4, 1);
  const Error error = error_of([&] { bind(rows, "D = accum; r = sum(accum)"); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_EQ(error.operand(), "gemm: epilogue operand r");
}

// --- lines --------------------------------------------------------------------------------------

TEST(Pointers, lines_print_as_they_were_read) {
  for (const char* const line :
       {"gemm 64x64x64x8 a=f16/pointers b=f16:c out=f32", "gemm 64x64x64 a=f16/pointers",
        "gemm 64x64x64x8 a=f16:c/ld=72/pointers/align=8 b=f16/pointers out=f32/pointers",
        "gemm 8x8x8x3 a=f32 c=f32[l,n]/pointers beta=1", "gemm 8x8x8x3 a=f32/strides=-9,1/pointers",
        "gemm 8x8x8x3 a=f32 epilogue=\"D = accum + r\" r=f32/pointers"}) {
    EXPECT_EQ(to_string(parse_problem(line)), line);
  }
  EXPECT_EQ(parse_problem("gemm 0x8x8x3 a=f32/pointers"), parse_problem("gemm 0x8x8x3 a=f32"))
      << "nothing is read by them";
}

TEST(Pointers, lines_refuse_what_has_none) {
  const auto expected = [](const char* line) {
    return error_of([&] { parse_problem(line); }).expected();
  };
  EXPECT_EQ(expected("gemm 8x8x8x3 a=f32/pointers/batch=64"), "either batch= or pointers");
  EXPECT_EQ(expected("gemm 8x8x8x3 a=f32/pointers/pointers"), "each modifier once");
  EXPECT_EQ(expected("gemm 8x8x8x3 a=f32 c=f32[n]/pointers"),
            "pointers with [l,m,n], [l,m], [l,n] or [l,1]");
  EXPECT_EQ(expected("gemm 8x8x8x3 a=f32 epilogue=\"D = accum; s = sum(D)\" s=f32[l,m]/pointers"),
            "no pointers for the result of a reduction");
}

}  // namespace
}  // namespace gemmery
