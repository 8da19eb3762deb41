// SPDX-License-Identifier: Apache-2.0
// Programs in kernels of both families on an emulated H200: designs that discovery rarely ranks
// first, reductions across tiles, casts of every bit pattern.
#include <gtest/gtest.h>
#include <gemmery/family.hpp>
#include <gemmery/gemmery.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "api/trial.hpp"
#include "core/number.hpp"
#include "tests/providers/templates/on_emulated_h200.hpp"

namespace gemmery {
namespace {

class EpilogueEmulated : public tests::OnEmulatedH200 {
 protected:
  std::string extent(int smallest, int largest, int step = 1) {
    std::uniform_int_distribution<int> steps((smallest + step - 1) / step, largest / step);
    return std::to_string(steps(random_) * step);
  }

  // `design`: a kernel's name without its epilogue.
  void check(const std::string& design, const std::string& text, int max_multiprocessors = 0) {
    const ProblemLine line = parse_problem(text);
    const std::string name = design + "_e-" + digest(line.problem.epilogue);
    const auto kernel = find_kernel(name);
    ASSERT_TRUE(kernel) << name;
    if (!rows_.takes_next()) return;
    const std::uint64_t seed = random_();
    const VerifyReport report = api::run_trial({.line = line,
                                                .options = {.seed = seed, .device = h200_},
                                                .repeats = 2,
                                                .max_multiprocessors = max_multiprocessors},
                                               *kernel);
    EXPECT_TRUE(report.passed) << text << " " << name << " seed " << seed << ": "
                               << report.first_failure;
  }

  // Matrices of bfloat16 as bit patterns.
  using Codes = std::vector<std::uint16_t>;
  static constexpr number::FloatFormat bfloat16 = number::float_format(DType::bfloat16);
  static std::uint16_t code_of(double value) {
    return static_cast<std::uint16_t>(number::encode(bfloat16, value));
  }
  static double value_of(std::uint16_t code) { return number::decode(bfloat16, code); }
  Buffer on_device(const Codes& codes) const {
    Buffer buffer(codes.size() * sizeof codes[0], stream_);
    copy(buffer.data(), h200_, codes.data(), Device::cpu(), buffer.bytes(), stream_);
    return buffer;
  }
  Tensor matrix(const Buffer& buffer, std::int64_t m, std::int64_t n) const {
    return Tensor(buffer.data(), DType::bfloat16, {m, n}, h200_);
  }

  const OwnedStream stream_{h200_};
};

// All distributions of accumulators in a block: one consumer, two by rows, two by columns,
// ping-pong, clusters, split k; several tiles along each index; D's staging tiles of each width.
TEST_F(EpilogueEmulated, reductions_along_every_extent_meet_across_tiles) {
  struct Row {
    const char* design;
    const char* words;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_64x64x64_1x1_coop_m8_s4",
            "a=bf16 b=bf16:c out=bf16"},
           {"sm90v7_gemm_bf16r16_bf16c16_f32r16_acc-f32_128x48x64_2x1_coop_m8_s4",
            "a=bf16 b=bf16:c out=f32"},
           {"sm90v7_gemm_f16r16_f16r16_f16r16_acc-f16_64x96x64_1x1_pingpong_n2_s4",
            "a=f16 b=f16 out=f16 acc=f16"},
           {"sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_320x32x64_1x1_coop_m8_s3",
            "a=bf16 b=bf16:c out=bf16"},
           {"sm90v7_gemm_bf16r16_bf16c16_bf16c16_acc-f32_128x64x64_1x2_coop_m8_s3",
            "a=bf16 b=bf16:c out=bf16:c"},
           {"sm90v7_gemm_bf16r16_bf16c16_f32r16_acc-f32_128x128x64_2x1_rotation_m8_s3",
            "a=bf16 b=bf16:c out=f32"},
           {"sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_64x64x64_1x1_k4_coop_m8_s3",
            "a=bf16 b=bf16:c out=bf16"},
           {"sm90v7_gemm_f16r16_f16c16_f32r16_acc-f16_128x96x64_1x1_k2_coop_m8_s2",
            "a=f16 b=f16:c out=f32 acc=f16"},
           {"simt1_gemm_f32r4_f32r4_f32x4_acc-f32_32x32x64_4x4_k4_s3", "a=f32/align=4 out=f32"},
           {"simt1_gemm_f32r16_f32r16_f32r16_acc-f32_64x64x16_8x4_k2_s3", "a=f32 out=f32"}}) {
    const std::string extents = extent(330, 500, 8) + "x" + extent(130, 300, 8) + "x" +
                                extent(8, 24, 8) + "x" + extent(2, 3);
    check(row.design,
          "gemm " + extents + " " + row.words +
              " epilogue=\"D = silu(accum + t); rows = sum(D); columns = max(accum); "
              "batches = amax(D); all = min(D); over_batches = sum(accum); low = min(accum)\" "
              "t=f16[l,m,n] rows=f32[l,m] columns=f32[n] batches=f32[l,1] all=bf16[1] "
              "over_batches=f32[m,n] low=f16[l,n]");
  }
}

// With int32 accumulators reductions are computed in float64. If blocks share k through the
// workspace, the last block of a tile writes its partial results. Two runs give the same bits.
TEST_F(EpilogueEmulated, reductions_stand_beside_integers_and_parts_of_tiles) {
  struct Row {
    const char* design;
    const char* words;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"sm90v7_gemm_s8r16_u8c16_s32r16_acc-s32_128x64x128_1x1_coop_m8_s4",
            "a=s8 b=u8:c out=s32"},
           {"sm90v7_gemm_s8c16_s8r16_s8c16_acc-s32_64x64x128_1x1_pingpong_m8_s3",
            "a=s8:c b=s8 out=s8:c"},
           {"sm90v7_gemm_u8r16_s8c16_f32r16_acc-s32_64x64x128_1x1_k2_coop_m8_s3",
            "a=u8 b=s8:c out=f32"},
           {"sm90v7_gemm_s8r16_s8c16_s32r16_acc-s32_128x64x128_1x1_parallel3_coop_m8_s3",
            "a=s8 b=s8:c out=s32"},
           {"sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x64x64_1x1_parallel3_coop_m8_s3",
            "a=bf16 b=bf16:c out=bf16"},
           {"sm90v7_gemm_bf16r16_bf16c16_f32r16_acc-f32_64x64x64_2x1_serial2_coop_m8_s3",
            "a=bf16 b=bf16:c out=f32"},
           {"sm90v7_gemm_f16r16_f16r16_f16r16_acc-f16_64x64x64_1x1_stream_pingpong_n2_s4",
            "a=f16 b=f16 out=f16 acc=f16"},
           {"sm90v7_gemm_e4m3r16_e5m2c16_bf16r16_acc-f32_wgmma-promoted_128x64x128_1x1_stream_coop_"
            "m8_s4",
            "a=e4m3 b=e5m2:c out=bf16"},
           {"sm80v1_gemm_f16r16_f16r16_f16r16_acc-f32_mma_64x64x32_2x2x1_serial3_m8_s3",
            "a=f16 b=f16 out=f16"},
           {"sm80v1_gemm_bf16r16_bf16c16_f32r16_acc-f32_mma_64x64x64_2x2x1_parallel4_m8_s3",
            "a=bf16 b=bf16:c out=f32"},
           {"sm80v1_gemm_s8r16_s8c16_s32r16_acc-s32_mma_64x64x128_2x2x1_stream_m8_s3",
            "a=s8 b=s8:c out=s32"},
           {"sm80v1_gemm_f64r16_f64c16_f64c16_acc-f64_mma-k8_32x32x16_1x2x1_parallel2_m8_s3",
            "a=f64 b=f64:c out=f64:c"}}) {
    const std::string extents = extent(200, 330, 16) + "x" + extent(130, 200, 16) + "x" +
                                extent(384, 528, 16) + "x" + extent(1, 2);
    check(row.design,
          "gemm " + extents + " " + row.words +
              " epilogue=\"D = accum + t; rows = sum(D); columns = max(accum); batches = amax(D); "
              "all = min(D); total = sum(accum); peak = amax(accum)\" t=f16[n] rows=f32[l,m] "
              "columns=f32[n] batches=f32[l,1] all=bf16[1] total=f32[1] peak=f32[1]",
          3);
  }
}

TEST_F(EpilogueEmulated, reductions_stand_beside_slices_of_few_rows) {
  for (const auto& [design, words] :
       {std::pair{"skinny1_gemm_bf16r16_bf16c16_bf16r16_acc-f32_m4_parallel3_128x4x3x32",
                  "a=bf16 b=bf16:c out=bf16"},
        std::pair{"skinny1_gemm_f32r16_f32r16_f32r16_acc-f32_m2_parallel4_256x4x2x32",
                  "a=f32 b=f32 out=f32"}}) {
    const std::string extents =
        extent(1, 2) + "x" + extent(264, 400, 8) + "x" + extent(2048, 3000, 8) + "x" + extent(1, 2);
    check(design,
          "gemm " + extents + " " + words +
              " epilogue=\"D = accum + t; rows = sum(D); columns = max(accum); all = min(D); "
              "total = sum(accum)\" t=f16[n] rows=f32[l,m] columns=f32[n] all=f32[1] total=f32[1]",
          3);
  }
}

// Operands of programs in all forms, with partial tiles; further results of other types than D.
TEST_F(EpilogueEmulated, operands_of_every_form_are_read_and_results_written) {
  for (const char* const design :
       {"sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_64x128x64_1x1_coop_m8_s4",
        "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x32x64_1x1_pingpong_m8_s4",
        "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x128x64_1x1_rotation_m8_s3",
        "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_64x128x64_1x1_k8_coop_m8_s4",
        "simt1_gemm_bf16r16_bf16c16_bf16x2_acc-f32_32x32x64_4x4_k4_s3"}) {
    const std::string extents =
        extent(100, 300) + "x" + extent(136, 264, 8) + "x" + extent(8, 40, 8) + "x2";
    check(design, "gemm " + extents +
                      " a=bf16 b=bf16:c out=bf16 epilogue=\"wide = accum * s + row + column; "
                      "D = wide * full + turned + each; narrow = D; other = -wide\" s=0.75 "
                      "row=f32[n] column=bf16[m] full=f16 turned=bf16:c each=f32[l,1] "
                      "wide=f64 narrow=e4m3 other=bf16:c");
  }
}

// Nothing is launched for an empty out, so nothing could write the reduction's result.
TEST(EpilogueOnDevices, reductions_of_nothing_are_refused_by_name) {
  const DeviceInfo& h200 = device_info(parse_device("emulated:h200").value());
  const auto problem = [](const char* extents) {
    return parse_problem(std::string("gemm ") + extents +
                         " a=f16 epilogue=\"D = accum; top = max(D)\" top=f32[n]")
        .problem;
  };
  const auto kernels = get_kernels(problem("8x8x8"), h200);
  ASSERT_FALSE(kernels.empty());
  const Status status = kernels.front().family().carries(problem("0x8x8"));
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().find("top"), std::string::npos) << status.error();
  EXPECT_TRUE(get_kernels(problem("0x8x8"), h200).empty());
}

// With many accumulators, the first stage of a tile is multiplied outside of the loop over the
// others, of which there may be none or several. There are more tiles than multiprocessors, so that
// consumers reuse registers that a program has used. In rotation this depends on the program.
TEST_F(EpilogueEmulated, programs_beside_many_sums_begin_every_tile_anew) {
  struct Row {
    const char* design;
    std::string k;
    const char* program;
  };
  constexpr const char* reduced =
      "epilogue=\"D = gelu(accum + bias); peak = amax(D)\" bias=bf16[n] peak=f32[1]";
  constexpr const char* dense = "epilogue=\"D = gelu(accum + bias)\" bias=bf16[n]";
  constexpr const char* slow = "epilogue=\"D = gelu_tanh(accum + bias)\" bias=bf16[n]";
  for (const Row& row : {Row{"128x192x64_1x1_pingpong_m8_s3", extent(8, 64, 8), reduced},
                         Row{"128x192x64_1x1_pingpong_m8_s3", extent(72, 256, 8), reduced},
                         Row{"256x192x64_1x1_coop_m8_s2", extent(8, 128, 8), reduced},
                         Row{"128x128x64_1x1_rotation_m8_s3", extent(72, 256, 8), reduced},
                         Row{"128x128x64_1x1_rotation_m8_s5", extent(8, 64, 8), dense},
                         Row{"128x128x64_1x2_rotation_m8_s4", extent(72, 384, 8), dense},
                         Row{"128x128x64_2x1_rotation_n2_s2", extent(72, 256, 8), slow}}) {
    check(std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_") + row.design,
          "gemm " + extent(1, 128) + "x" + extent(200, 380, 8) + "x" + row.k + "x" + extent(6, 12) +
              " a=bf16 b=bf16:c out=bf16 " + row.program,
          4);
  }
}

// The vector that a program adds first, added by tensor cores: each type, for each matrix of a
// batch, partial tiles, with other vectors, with more turns than a consumer has buffers.
TEST_F(EpilogueEmulated, a_wgmma_adds_the_row_vector_that_a_program_adds_first) {
  struct Row {
    const char* design;
    const char* words;
  };
  for (const Row& row : {
           Row{"bf16r16_bf16c16_bf16r16_acc-f32_128x128x64_1x1_rotation-add_m8_s3",
               "a=bf16 b=bf16:c epilogue=\"D = gelu(accum + bias)\" bias=bf16[n]"},
           Row{"f16r16_f16r16_f16r16_acc-f32_128x128x64_1x2_rotation-add_m8_s4",
               "a=f16 b=f16 epilogue=\"D = gelu_tanh(bias + accum)\" bias=f16[l,n]"},
           Row{"bf16c16_bf16c16_f16r16_acc-f32_128x128x64_2x1_rotation-add_n2_s2",
               "a=bf16:c b=bf16:c out=f16 epilogue=\"D = scale * (accum + bias) + column; "
               "peak = amax(D)\" scale=f32[l,1] bias=bf16[n] column=f32[m] peak=f32[1]"},
           Row{"bf16r16_bf16c16_bf16c16_acc-f32_128x128x64_1x1_rotation-add_m8_s3",
               "a=bf16 b=bf16:c out=bf16:c epilogue=\"D = silu(accum + bias)\" bias=bf16[m]"},
       }) {
    check(std::string("sm90v7_gemm_") + row.design,
          "gemm " + extent(8, 264, 8) + "x" + extent(200, 380, 8) + "x" + extent(8, 200, 8) + "x" +
              extent(6, 12) + " " + row.words,
          2);
  }
}

// The result is the sum of all, rounded once, also for infinities, NaN, zeros and subnormals.
TEST_F(EpilogueEmulated, a_wgmma_adds_vectors_of_every_value) {
  constexpr std::int64_t rows = 130;
  constexpr std::int64_t columns = 264;
  constexpr std::int64_t depth = 8;
  const auto rounded = [](double value) { return value_of(code_of(value)); };
  Codes vector(columns);
  for (std::uint16_t& code : vector) code = static_cast<std::uint16_t>(random_());
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double edges[] = {infinity, -infinity, -0.0, 0.0, 0x1p-130, -0x1p-133, 0x1.fep127};
  for (std::size_t at = 0; at < std::size(edges); ++at) vector[37 * at] = code_of(edges[at]);
  vector[5] = 0x7fc0;
  // Every sum is depth, every second row's 0.
  Codes left(rows * depth);
  for (std::size_t at = 0; at < left.size(); ++at) left[at] = code_of(at / depth % 2 == 0 ? 1 : 0);
  const Codes ones(depth * columns, code_of(1));
  const Buffer a = on_device(left);
  const Buffer b = on_device(ones);
  const Buffer bias = on_device(vector);
  const Buffer out(rows * columns * 2, stream_);
  GemmOptions options;
  options.epilogue = EpilogueArguments("D = accum + bias", {{"bias", matrix(bias, 1, columns)}});
  const GemmArguments arguments(matrix(a, rows, depth), matrix(b, depth, columns),
                                matrix(out, rows, columns), options);
  const auto kernel = find_kernel(
      "sm90v7_gemm_bf16r16_bf16r16_bf16r16_acc-f32_128x128x64_1x1_rotation-add_m8_s3_e-" +
      digest(arguments.problem().epilogue));
  ASSERT_TRUE(kernel);
  kernel->run(arguments, {.stream = stream_});
  Codes got(rows * columns);
  copy(got.data(), Device::cpu(), out.data(), h200_, out.bytes(), stream_);
  synchronize(stream_);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      const double added = value_of(vector[static_cast<std::size_t>(column)]);
      const double exact = added + (row % 2 == 0 ? depth : 0);
      const double value = value_of(got[static_cast<std::size_t>(row * columns + column)]);
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(value)) << row << ", " << column;
      } else if (std::isinf(exact)) {
        EXPECT_EQ(value, exact) << row << ", " << column;
      } else {
        // Tensor cores truncate a sum by up to 2^-23 of the larger addend; then it is rounded.
        // A sum with 0 is exact.
        const bool has_sum = row % 2 == 0;
        const double truncated = has_sum ? std::fmax(std::fabs(added), depth) * 0x1p-23 : 0;
        EXPECT_GE(value, rounded(exact - truncated)) << row << ", " << column << ": " << exact;
        EXPECT_LE(value, rounded(exact + truncated)) << row << ", " << column << ": " << exact;
      }
    }
}

// Reductions over whole tiles ignore elements out of bounds: the bias in rows out of bounds, and
// the NaN in columns out of bounds, the product of an infinity in A and B's zeros.
TEST_F(EpilogueEmulated, reductions_of_whole_tiles_make_nothing_of_what_is_beyond_out) {
  const std::int64_t rows = 128 + static_cast<std::int64_t>(random_() % 130);
  constexpr std::int64_t depth = 8;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    std::int64_t columns;
    float value;  // the elements of one row of A. The sums of other rows are at most 8
    float peak;   // the largest result of that row
  };
  for (const auto& [columns, value, peak_of_row] :
       {Case{3, infinity, 50}, Case{7, infinity, 50}, Case{120, -infinity, infinity},
        Case{119, infinity, 50}, Case{136, infinity, 50}, Case{137, nan, nan},
        Case{256, infinity, 50}, Case{263, 1, 0}, Case{378, infinity, 50},
        Case{384, -infinity, infinity}}) {
    const std::int64_t pitch = (columns + 7) / 8 * 8;  // rows begin at 16 bytes
    Codes left(static_cast<std::size_t>(rows * depth), code_of(1));
    const auto row = static_cast<std::size_t>(random_() % static_cast<unsigned>(rows));
    for (std::size_t k = 0; k < depth; ++k) left[row * depth + k] = code_of(value);
    const Codes ones(static_cast<std::size_t>(depth * columns), code_of(1));
    Codes vector(static_cast<std::size_t>(columns));
    float largest = peak_of_row;
    for (std::uint16_t& code : vector) {
      const auto added = static_cast<float>(random_() % 200) - 100;
      code = code_of(added);
      const float result = std::fabs(std::fmin(added + depth, 50.0F));
      largest = largest < result ? result : largest;  // NaN stays
    }
    const Buffer a = on_device(left);
    const Buffer b = on_device(ones);
    const Buffer bias = on_device(vector);
    const Buffer out(static_cast<std::size_t>(rows * pitch) * 2, stream_);
    const Buffer peak(4, stream_);
    GemmOptions options;
    options.epilogue =
        EpilogueArguments("D = min(accum + bias, 50); peak = amax(D)",
                          {{"bias", matrix(bias, 1, columns)},
                           {"peak", Tensor(peak.data(), DType::float32, {1, 1}, h200_)}});
    const GemmArguments arguments(
        matrix(a, rows, depth),
        Tensor(b.data(), DType::bfloat16, {depth, columns}, {1, depth}, h200_),
        Tensor(out.data(), DType::bfloat16, {rows, columns}, {pitch, 1}, h200_), options);
    for (const char* const schedule : {"rotation", "rotation-add"}) {
      const auto kernel =
          find_kernel("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x128x64_1x1_" +
                      std::string(schedule) + "_m8_s3_e-" + digest(arguments.problem().epilogue));
      ASSERT_TRUE(kernel);
      kernel->run(arguments, {.stream = stream_});
      float got = 0;
      copy(&got, Device::cpu(), peak.data(), h200_, sizeof got, stream_);
      synchronize(stream_);
      EXPECT_TRUE(got == largest || (std::isnan(got) && std::isnan(largest)))
          << schedule << ", " << rows << " x " << columns << ": " << got << ", not " << largest;
    }
  }
}

// Any extents; also with float16 accumulators, which do not use whole tiles.
TEST_F(EpilogueEmulated, kernels_that_reduce_whole_tiles_are_right_at_ragged_edges) {
  struct Row {
    const char* design;
    const char* words;
  };
  for (const Row& row :
       {Row{"bf16r16_bf16c16_bf16r16_acc-f32_128x128x64_1x1_rotation-add_m8_s3",
            "a=bf16 b=bf16:c out=bf16/ld=384 epilogue=\"D = gelu(accum + bias); peak = amax(D)\" "
            "bias=bf16[n] peak=f32[1]"},
        Row{"bf16r16_bf16c16_bf16r16_acc-f32_128x128x64_1x1_rotation-add_m8_s3",
            "a=bf16 b=bf16:c out=bf16/ld=384 epilogue=\"x = accum + bias; D = silu(x); "
            "peak = amax(2 * x)\" bias=bf16[n] peak=f32[1]"},
        Row{"bf16r16_bf16c16_bf16r16_acc-f32_128x128x64_1x1_rotation_m8_s3",
            "a=bf16 b=bf16:c out=bf16/ld=384 epilogue=\"D = silu(accum); peak = amax(accum)\" "
            "peak=f16[1]"},
        Row{"f16r16_f16c16_f16r16_acc-f16_128x128x64_1x1_rotation_m8_s3",
            "a=f16 b=f16:c out=f16/ld=384 acc=f16 epilogue=\"D = gelu(accum); peak = amax(D)\" "
            "peak=f32[1]"}}) {
    check(std::string("sm90v7_gemm_") + row.design,
          "gemm " + extent(1, 300) + "x" + extent(1, 380) + "x" + extent(8, 200, 8) + "x" +
              extent(1, 4) + " " + row.words,
          2);
  }
}

// A prepared launch clears its workspace once; each launch restores it, for any operands.
TEST_F(EpilogueEmulated, prepared_launches_reduce_anew_each_time) {
  constexpr std::int64_t rows = 150;
  constexpr std::int64_t columns = 136;
  constexpr std::int64_t depth = 16;
  const Buffer a(rows * depth * 2, stream_);
  const Buffer b(depth * columns * 2, stream_);
  const Buffer out(rows * columns * 2, stream_);
  const Buffer peak(4, stream_);
  const Buffer sums(rows * 4, stream_);
  GemmOptions options;
  options.epilogue =
      EpilogueArguments("D = accum; peak = amax(D); sums = sum(D)",
                        {{"peak", Tensor(peak.data(), DType::float32, {1}, h200_)},
                         {"sums", Tensor(sums.data(), DType::float32, {rows, 1}, h200_)}});
  const GemmArguments arguments(matrix(a, rows, depth), matrix(b, depth, columns),
                                matrix(out, rows, columns), options);
  const std::vector<RankedKernel> kernels = get_kernels(arguments);
  ASSERT_FALSE(kernels.empty());
  PreparedLaunch launch = kernels.front().compile(arguments).bind(arguments);
  // Every element of out is depth times the value in A and B: 2^power.
  for (const int power : {3, -2, 0, 5}) {
    const Codes full(rows * depth, code_of(std::ldexp(1, power)));
    const Codes ones(depth * columns, code_of(1));
    copy(a.data(), h200_, full.data(), Device::cpu(), a.bytes(), stream_);
    copy(b.data(), h200_, ones.data(), Device::cpu(), b.bytes(), stream_);
    launch.launch(stream_);
    float got = 0;
    std::vector<float> row_sums(rows);
    copy(&got, Device::cpu(), peak.data(), h200_, sizeof got, stream_);
    copy(row_sums.data(), Device::cpu(), sums.data(), h200_, sums.bytes(), stream_);
    synchronize(stream_);
    const float element = std::ldexp(static_cast<float>(depth), power);
    EXPECT_EQ(got, element);
    for (const float sum : row_sums) ASSERT_EQ(sum, element * columns);
  }
}

// --- casts ---------------------------------------------------------------------------------------

// Every float16, and float32 numbers next to it and between neighbours.
std::vector<float> all_halves_and_neighbours() {
  std::vector<float> values;
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto half = static_cast<std::uint16_t>(code);
    _Float16 number;
    std::memcpy(&number, &half, sizeof number);
    const auto value = static_cast<float>(number);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    values.push_back(value);
    values.push_back(std::bit_cast<float>(bits + 1));
  }
  return values;
}

// Runs the program with the best kernel on the device and returns D.
std::vector<float> run_on(Device device, const std::string& program,
                          const std::vector<float>& values) {
  const std::int64_t rows = 256;
  const auto columns = static_cast<std::int64_t>(values.size()) / rows;
  const OwnedStream own = device.is_cpu() ? OwnedStream(Device::cpu()) : OwnedStream(device);
  const Stream stream = device.is_cpu() ? Stream::cpu() : own.get();
  const std::size_t bytes = values.size() * sizeof(float);
  const Buffer a(static_cast<std::size_t>(rows) * 4, stream);
  const Buffer b(static_cast<std::size_t>(columns) * 4, stream);
  const Buffer t(bytes, stream);
  const Buffer out(bytes, stream);
  fill(a.data(), 0, a.bytes(), stream);
  fill(b.data(), 0, b.bytes(), stream);
  copy(t.data(), device, values.data(), Device::cpu(), bytes, stream);
  const auto view = [&](const Buffer& buffer, std::int64_t m, std::int64_t n) {
    return Tensor(buffer.data(), DType::float32, {m, n}, device);
  };
  GemmOptions options;
  options.epilogue = EpilogueArguments(program, {{"t", view(t, rows, columns)}});
  const GemmArguments arguments(view(a, rows, 1), view(b, 1, columns), view(out, rows, columns),
                                options);
  get_kernels(arguments).front().run(arguments, {.stream = stream});
  std::vector<float> result(values.size());
  copy(result.data(), Device::cpu(), out.data(), device, bytes, stream);
  synchronize(stream);
  return result;
}

TEST_F(EpilogueEmulated, casts_give_the_bits_of_the_host) {
  const std::vector<float> values = all_halves_and_neighbours();
  for (const std::string type : {"e4m3", "e5m2", "f16", "bf16", "s8", "u8", "s32", "u32"}) {
    for (const std::string rule : {"", ", saturate", ", toward_zero", ", toward_zero, saturate"}) {
      const std::string program = "D = cast(t, " + type + rule + ") + accum";
      const std::vector<float> want = run_on(Device::cpu(), program, values);
      const std::vector<float> got = run_on(h200_, program, values);
      int wrong = 0;
      for (std::size_t at = 0; at < values.size(); ++at) {
        const bool agrees = std::isnan(want[at]) ? std::isnan(got[at]) : want[at] == got[at];
        if (!agrees && ++wrong < 5)
          ADD_FAILURE() << program << " of " << values[at] << ": " << got[at] << " for "
                        << want[at];
      }
      EXPECT_EQ(wrong, 0) << program;
    }
  }
}

}  // namespace
}  // namespace gemmery
