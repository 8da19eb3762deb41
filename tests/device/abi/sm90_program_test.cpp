// SPDX-License-Identifier: Apache-2.0
// How sm90 blocks load operands of programs. Compiled for the host only.
#include "device/abi/sm90_program.hpp"

#include <gtest/gtest.h>

namespace gemmery::abi {
namespace {

constexpr Sm90Design design{.a = DType::bfloat16,
                            .b = DType::bfloat16,
                            .accumulator = DType::float32,
                            .math = MmaMath::native,
                            .c = DType::float32,
                            .out = DType::float32,
                            .a_major = Major::k,
                            .b_major = Major::k,
                            .tile_m = 128,
                            .tile_n = 256,
                            .cluster_m = 1,
                            .cluster_n = 1,
                            .schedule = Schedule::cooperative,
                            .raster = {.along = Along::m, .band = 8},
                            .stages = 4,
                            .has_c = false};
constexpr EpilogueTensor row_vector{.dtype = DType::float32,
                                    .varies_l = false,
                                    .varies_m = false,
                                    .varies_n = true,
                                    .vector_bytes = 16,
                                    .reduction = Reduction::none};

TEST(Sm90Program, vectors_of_more_than_2_31_bytes_are_read_to_their_ends) {
  constexpr unsigned end = 0x7ffffb00U;  // 2^33 bytes
  for (const unsigned begin : {0U, 1U << 28, 1U << 29, 1U << 30, end - 256})
    EXPECT_EQ(vector_bytes_left(row_vector, design, begin, end), 1024) << begin;
  EXPECT_EQ(vector_bytes_left(row_vector, design, end - 100, end), 400);
  EXPECT_EQ(vector_bytes_left(row_vector, design, end, end), 0);
  EXPECT_EQ(vector_bytes_left(row_vector, design, end + 256, end), 0);
}

}  // namespace
}  // namespace gemmery::abi
