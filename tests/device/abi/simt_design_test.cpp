// SPDX-License-Identifier: Apache-2.0
// The arithmetic that host and device code share: values that follow from a design, and the designs
// that are refused.
#include "device/abi/simt_design.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace gemmery::abi {
namespace {

constexpr SimtDesign plain{.a = DType::float32,
                           .b = DType::float32,
                           .c = DType::float32,
                           .out = DType::float32,
                           .accumulator = DType::float32,
                           .a_contiguity = Contiguity::row_major,
                           .b_contiguity = Contiguity::column_major,
                           .c_contiguity = Contiguity::row_major,
                           .out_contiguity = Contiguity::row_major,
                           .a_vector_bytes = 16,
                           .b_vector_bytes = 16,
                           .c_vector_bytes = 16,
                           .out_vector_bytes = 16,
                           .tile_m = 128,
                           .tile_n = 64,
                           .tile_k = 8,
                           .thread_m = 8,
                           .thread_n = 8,
                           .k_slices = 1,
                           .stages = 4,
                           .has_c = true};
static_assert(is_legal(plain));

TEST(SimtDesign, threads_and_shared_bytes_follow_from_the_tile) {
  EXPECT_EQ(thread_count(plain), 16 * 8);
  EXPECT_EQ(stage_bytes(plain), (132 + 68) * 8 * 4);
  EXPECT_EQ(shared_bytes(plain), 4 * stage_bytes(plain));
}

TEST(SimtDesign, bytes_are_staged_four_to_a_word) {
  SimtDesign design = plain;
  design.a = DType::int8;
  design.b = DType::uint8;
  design.c = design.out = design.accumulator = DType::int32;
  design.tile_k = 32;
  EXPECT_TRUE(is_legal(design));
  EXPECT_EQ(stage_bytes(design), (132 + 68) * (32 / 4) * 4);
}

TEST(SimtDesign, slices_of_k_need_room_to_add_up) {
  SimtDesign design = plain;
  design.tile_m = design.tile_n = 64;
  design.k_slices = 2;
  design.stages = 2;
  EXPECT_EQ(thread_count(design), 8 * 8 * 2);
  EXPECT_EQ(shared_bytes(design), 64 * 64 * 4) << "more than two stages of 68 + 68 words by 8";
}

TEST(SimtDesign, a_grid_covers_all_tiles_or_strides_over_them) {
  EXPECT_EQ(tiles_along(0, 128), 0U);
  EXPECT_EQ(tiles_along(1, 128), 1U);
  EXPECT_EQ(tiles_along(129, 128), 2U);
  EXPECT_EQ(tiles_along(0x7fffffffU, 8), 0x10000000U);
  const auto blocks = [](unsigned tiles, unsigned batches, unsigned limit = 0x7fffffffU) {
    const SimtGrid grid = simt_grid(tiles, batches, limit);
    return std::pair(grid.x, grid.y);
  };
  EXPECT_EQ(blocks(5, 1), std::pair(5U, 1U));
  EXPECT_EQ(blocks(5, 70000), std::pair(5U, 65535U));
  EXPECT_EQ(blocks(0x7fffffffU, 9), std::pair(0x7fffffffU, 1U));
  EXPECT_EQ(blocks(1000, 9, 132), std::pair(132U, 1U));
  EXPECT_EQ(blocks(50, 9, 132), std::pair(50U, 2U));
  EXPECT_TRUE(fits_grid(0x7fffU, 0x10001U));
  EXPECT_FALSE(fits_grid(0x8000U, 0x10000U));
  EXPECT_FALSE(fits_grid(0x10000000U, 0x10000000U));
}

// A change of the default design, and the field in the error.
struct Refusal {
  const char* what;
  std::function<void(SimtDesign&)> change;
  SimtFault fault;
};

TEST(SimtDesign, each_illegal_field_is_named) {
  const Refusal refusals[] = {
      {"a f64 operand in f32", [](SimtDesign& d) { d.a = DType::float64; },
       SimtFault::operand_types},
      {"b an integer of 32 bits", [](SimtDesign& d) { d.b = DType::int32; },
       SimtFault::operand_types},
      {"accumulation in f16", [](SimtDesign& d) { d.accumulator = DType::float16; },
       SimtFault::operand_types},
      {"vectors of a 4-bit operand", [](SimtDesign& d) { d.a = DType::float4_e2m1fn; },
       SimtFault::a_vector_bytes},
      {"a 4-bit operand whose rows are found by indices",
       [](SimtDesign& d) {
         d.a = DType::float4_e2m1fn;
         d.a_contiguity = Contiguity::none;
         d.a_vector_bytes = 1;
         d.indexed = IndexedExtent::rows;
       },
       SimtFault::operand_types},
      {"c of integers", [](SimtDesign& d) { d.c = DType::int8; }, SimtFault::c_type},
      {"out of fp8", [](SimtDesign& d) { d.out = DType::float8_e4m3fn; }, SimtFault::out_type},
      {"a vector of 32 bytes", [](SimtDesign& d) { d.a_vector_bytes = 32; },
       SimtFault::a_vector_bytes},
      {"a vector of 2 bytes of f32", [](SimtDesign& d) { d.a_vector_bytes = 2; },
       SimtFault::a_vector_bytes},
      {"b vector of 12 bytes", [](SimtDesign& d) { d.b_vector_bytes = 12; },
       SimtFault::b_vector_bytes},
      {"b vector without contiguity", [](SimtDesign& d) { d.b_contiguity = Contiguity::none; },
       SimtFault::b_vector_bytes},
      {"c vector of 0 bytes", [](SimtDesign& d) { d.c_vector_bytes = 0; },
       SimtFault::c_vector_bytes},
      {"out vector of 3 bytes", [](SimtDesign& d) { d.out_vector_bytes = 3; },
       SimtFault::out_vector_bytes},
      {"tile_m not a power of two", [](SimtDesign& d) { d.tile_m = 96; }, SimtFault::tile_m},
      {"tile_n too large", [](SimtDesign& d) { d.tile_n = 512; }, SimtFault::tile_n},
      {"tile_k too small", [](SimtDesign& d) { d.tile_k = 4; }, SimtFault::tile_k},
      {"tile_k below two k for each slice", [](SimtDesign& d) { d.k_slices = 4; },
       SimtFault::tile_k},
      {"thread_m of 0", [](SimtDesign& d) { d.thread_m = 0; }, SimtFault::thread_m},
      {"thread_n of 3", [](SimtDesign& d) { d.thread_n = 3; }, SimtFault::thread_n},
      {"k_slices of 3", [](SimtDesign& d) { d.k_slices = 3; }, SimtFault::k_slices},
      {"one stage", [](SimtDesign& d) { d.stages = 1; }, SimtFault::stages},
      {"half a warp", [](SimtDesign& d) { d.tile_m = d.tile_n = 32; }, SimtFault::thread_count},
      {"2048 threads", [](SimtDesign& d) { d.thread_m = d.thread_n = 2; }, SimtFault::thread_count},
      {"128 KiB of stages",
       [](SimtDesign& d) {
         d.tile_k = 32;
         d.stages = 5;
       },
       SimtFault::shared_bytes},
  };
  for (const Refusal& refusal : refusals) {
    SimtDesign design = plain;
    refusal.change(design);
    EXPECT_EQ(find_fault(design), refusal.fault) << refusal.what;
  }
}

}  // namespace
}  // namespace gemmery::abi
