// SPDX-License-Identifier: Apache-2.0
// Values that follow from an sm90 design, and the field for which a bad one is refused. Compiled
// for the host only.
#include "device/abi/sm90_faults.hpp"

#include <gtest/gtest.h>

namespace gemmery::abi {
namespace {

constexpr Sm90Design sound{.a = DType::bfloat16,
                           .b = DType::bfloat16,
                           .accumulator = DType::float32,
                           .math = MmaMath::native,
                           .c = DType::bfloat16,
                           .out = DType::bfloat16,
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

template <class Change>
Sm90Design with(const Change& change) {
  Sm90Design design = sound;
  change(design);
  return design;
}

TEST(Sm90Design, a_bad_field_is_named) {
  static_assert(is_legal(sound));
  struct Row {
    Sm90Fault fault;
    Sm90Design design;
  };
  const Row rows[] = {
      {Sm90Fault::operand_type, with([](auto& d) { d.a = DType::float32; })},
      {Sm90Fault::operand_type, with([](auto& d) { d.a = d.b = DType::float64; })},
      {Sm90Fault::operand_type, with([](auto& d) { d.a = DType::float16; })},
      {Sm90Fault::operand_type,
       with([](auto& d) { d.a = DType::int8, d.b = DType::float8_e4m3fn; })},
      {Sm90Fault::math, with([](auto& d) { d.a = d.b = DType::float32; })},
      {Sm90Fault::math, with([](auto& d) { d.math = MmaMath::tf32; })},
      {Sm90Fault::math, with([](auto& d) { d.math = MmaMath::promoted; })},
      {Sm90Fault::accumulator_type, with([](auto& d) { d.a = d.b = DType::int8; })},
      {Sm90Fault::out_type,
       with([](auto& d) { d.a = d.b = DType::int8, d.accumulator = DType::int32; })},
      {Sm90Fault::tile_n,
       with([](auto& d) { d.a = d.b = d.out = DType::float8_e4m3fn, d.tile_n = 48; })},
      {Sm90Fault::accumulators,
       with([](auto& d) { d.a = d.b = DType::float8_e4m3fn, d.math = MmaMath::promoted; })},
      {Sm90Fault::split_k, with([](auto& d) {
         d.a = d.b = DType::uint8, d.accumulator = d.out = DType::int32;
         d.math = MmaMath::saturate, d.split_k = 2, d.tile_n = 128;
       })},
      {Sm90Fault::accumulator_type, with([](auto& d) { d.accumulator = DType::float16; })},
      {Sm90Fault::accumulator_type, with([](auto& d) { d.accumulator = DType::float64; })},
      {Sm90Fault::out_type, with([](auto& d) { d.out = DType::int32; })},
      {Sm90Fault::c_type, with([](auto& d) { d.has_c = true, d.c = DType::float64; })},
      {Sm90Fault::tile_m, with([](auto& d) { d.tile_m = 96; })},
      {Sm90Fault::tile_m, with([](auto& d) { d.tile_m = 384; })},
      {Sm90Fault::tile_n, with([](auto& d) { d.tile_m = 320, d.tile_n = 144; })},
      {Sm90Fault::tile_n,
       with([](auto& d) { d.tile_m = 320, d.tile_n = 96, d.b_major = Major::extent; })},
      {Sm90Fault::accumulators,
       with([](auto& d) { d.tile_m = 320, d.tile_n = 192, d.stages = 2; })},
      {Sm90Fault::tile_n, with([](auto& d) { d.tile_n = 24; })},
      {Sm90Fault::tile_n, with([](auto& d) { d.tile_n = 272; })},
      {Sm90Fault::tile_n, with([](auto& d) { d.tile_n = 0; })},
      {Sm90Fault::schedule, with([](auto& d) { d.schedule = Schedule::rotation; })},
      {Sm90Fault::schedule,
       with([](auto& d) { d.schedule = Schedule::rotation, d.tile_n = 128, d.has_c = true; })},
      {Sm90Fault::schedule,
       with([](auto& d) { d.schedule = Schedule::rotation, d.tile_n = 128, d.split_k = 2; })},
      {Sm90Fault::addend, with([](auto& d) { d.adds_vector = true; })},
      {Sm90Fault::cluster, with([](auto& d) { d.cluster_m = 2, d.cluster_n = 2; })},
      {Sm90Fault::cluster, with([](auto& d) { d.cluster_n = 0; })},
      {Sm90Fault::cluster, with([](auto& d) { d.cluster_n = 3; })},
      {Sm90Fault::split_k, with([](auto& d) { d.split_k = 0; })},
      {Sm90Fault::split_k, with([](auto& d) { d.split_k = 3; })},
      {Sm90Fault::split_k, with([](auto& d) { d.split_k = 16; })},
      {Sm90Fault::split_k, with([](auto& d) { d.split_k = 4, d.tile_n = 96; })},
      {Sm90Fault::split_k, with([](auto& d) { d.split_k = 2, d.cluster_m = 2; })},
      {Sm90Fault::split_k,
       with([](auto& d) { d.split_k = 2, d.tile_n = 64, d.schedule = Schedule::ping_pong; })},
      {Sm90Fault::split_k,
       with([](auto& d) { d.split_k = 2, d.tile_m = 320, d.tile_n = 128, d.stages = 2; })},
      {Sm90Fault::split_k,
       with([](auto& d) { d.split = SplitMode::stream, d.split_k = 2, d.tile_n = 128; })},
      {Sm90Fault::split_k,
       with([](auto& d) { d.split = SplitMode::serial, d.split_k = 2, d.tile_n = 128; })},
      {Sm90Fault::split_k, with([](auto& d) {
         d.split = SplitMode::parallel, d.split_k = 2, d.tile_n = 128, d.cluster_m = 2;
       })},
      {Sm90Fault::accumulators, with([](auto& d) {
         d.split = SplitMode::parallel, d.split_k = 2, d.tile_m = 192, d.tile_n = 32;
       })},
      {Sm90Fault::raster, with([](auto& d) { d.raster.band = 0; })},
      {Sm90Fault::raster, with([](auto& d) { d.raster.band = 12; })},
      {Sm90Fault::raster, with([](auto& d) { d.raster.band = 128; })},
      {Sm90Fault::accumulators, with([](auto& d) { d.tile_m = 256; })},
      {Sm90Fault::accumulators, with([](auto& d) { d.tile_m = 192, d.tile_n = 208; })},
      {Sm90Fault::accumulators, with([](auto& d) { d.schedule = Schedule::ping_pong; })},
      {Sm90Fault::stages, with([](auto& d) { d.stages = 1; })},
      {Sm90Fault::stages, with([](auto& d) { d.stages = 9; })},
      {Sm90Fault::shared_bytes, with([](auto& d) { d.stages = 5; })},
  };
  for (const Row& row : rows) EXPECT_EQ(find_fault(row.design), row.fault);
}

TEST(Sm90Design, the_most_stages_fit_and_one_more_would_not) {
  for (int tile_m = 64; tile_m <= 320; tile_m += 64) {
    for (int tile_n = 16; tile_n <= 256; tile_n += 16) {
      for (const DType out : {DType::bfloat16, DType::float32}) {
        Sm90Design design = sound;
        design.tile_m = tile_m;
        design.tile_n = tile_n;
        design.out = out;
        design.stages = most_stages(design);
        EXPECT_LE(shared_bytes(design), sm90_shared_limit);
        const Sm90Fault fault = find_fault(design);
        EXPECT_TRUE(fault == Sm90Fault::none || fault == Sm90Fault::accumulators ||
                    fault == Sm90Fault::tile_n)
            << tile_m << "x" << tile_n;
        if (design.stages == 8) continue;
        ++design.stages;
        EXPECT_GT(shared_bytes(design), sm90_shared_limit) << tile_m << "x" << tile_n;
      }
    }
  }
}

TEST(Sm90Design, in_rotation_three_warpgroups_have_a_tile_each) {
  const Sm90Design design =
      with([](auto& d) { d.schedule = Schedule::rotation, d.tile_n = 128, d.stages = 5; });
  EXPECT_TRUE(is_legal(design));
  EXPECT_EQ(consumer_count(design), 3);
  EXPECT_EQ(consumers_per_tile(design), 1);
  EXPECT_EQ(turn_count(design), 3);
  EXPECT_EQ(accumulator_registers(design), 128);
  EXPECT_EQ(registers_beside_sums(design), 32);
  EXPECT_LE(thread_count(design) * 128, 65536) << "registers at launch";
}

TEST(Sm90Design, five_blocks_of_rows_are_shared_by_columns) {
  Sm90Design design = sound;
  design.tile_m = 320;
  design.tile_n = 128;
  design.stages = 3;
  EXPECT_TRUE(is_legal(design));
  EXPECT_EQ(consumer_count(design), 2);
  EXPECT_EQ(blocks_per_consumer(design), 5);
  EXPECT_EQ(columns_per_consumer(design), 64);
  design.schedule = Schedule::ping_pong;  // whole tiles
  design.tile_n = 80;
  EXPECT_TRUE(is_legal(design));
  EXPECT_EQ(columns_per_consumer(design), 80);
}

TEST(Sm90Design, blocks_that_split_k_store_a_share_of_the_columns) {
  Sm90Design design = sound;
  design.a = design.b = DType::float16;
  design.accumulator = DType::float16;
  EXPECT_EQ(stored_design(design), design);
  for (const int split_k : {2, 4, 8}) {
    design.split_k = split_k;
    design.stages = most_stages(design);
    ASSERT_TRUE(is_legal(design)) << split_k;
    EXPECT_EQ(cluster_size(design), split_k);
    EXPECT_EQ(sharing_blocks(design), 1);
    const Sm90Design stored = stored_design(design);
    EXPECT_EQ(stored.tile_m, design.tile_m);
    EXPECT_EQ(stored.tile_n * split_k, design.tile_n);
    EXPECT_EQ(stored.accumulator, DType::float32);
    EXPECT_EQ(stored.split_k, 1);
    EXPECT_EQ(staging_bytes(stored), staging_bytes(design));
    // The accumulators of the whole tile.
    EXPECT_GE(split_sums_bytes(design), design.tile_m * design.tile_n * 2);
  }
}

TEST(Sm90Design, float16_sums_take_half_of_the_registers) {
  Sm90Design design = sound;
  design.a = design.b = DType::float16;
  design.tile_m = 256;
  design.stages = 3;
  EXPECT_EQ(find_fault(design), Sm90Fault::accumulators);
  const int registers = accumulator_registers(design);
  design.accumulator = DType::float16;
  EXPECT_EQ(2 * accumulator_registers(design), registers);
  EXPECT_TRUE(is_legal(design));
}

TEST(Sm90Design, transposed_operands_of_clusters_that_split_k_leave_fewer_registers) {
  Sm90Design design = sound;
  design.a = design.b = DType::float32;
  design.c = design.out = DType::float32;
  design.math = MmaMath::tf32;
  design.a_major = design.b_major = Major::k;
  design.tile_m = 128;
  design.tile_n = 192;
  design.split_k = 2;
  design.stages = 2;
  EXPECT_TRUE(is_legal(design));
  design.b_major = Major::extent;
  EXPECT_EQ(find_fault(design), Sm90Fault::accumulators);
  design.tile_n = 160;
  EXPECT_TRUE(is_legal(design));
  design.tile_n = 192;
  design.split_k = 1;
  EXPECT_TRUE(is_legal(design)) << "not split";
}

TEST(Sm90Design, a_stage_has_a_swizzled_row_of_k_of_any_type) {
  const auto with_operands = [](DType dtype) {
    return with([dtype](auto& d) { d.a = d.b = dtype; });
  };
  EXPECT_EQ(tile_k(with_operands(DType::int8)), 128);
  EXPECT_EQ(tile_k(with_operands(DType::bfloat16)), 64);
  EXPECT_EQ(tile_k(with_operands(DType::float32)), 32);
  // 208 rows in atoms with as many rows as a stage has k.
  EXPECT_EQ(operand_stage_bytes(Major::k, 208, 128, 128), 208 * 128);
  EXPECT_EQ(operand_stage_bytes(Major::extent, 208, 128, 128), 256 * 128);
  EXPECT_EQ(operand_stage_bytes(Major::extent, 208, 32, 128), 224 * 128);
}

TEST(Sm90Design, what_wgmma_takes_k_major_only_is_transposed) {
  EXPECT_FALSE(is_transposed(DType::float16, Major::extent));
  EXPECT_EQ(multiplied_major(DType::float16, Major::extent), Major::extent);
  for (const DType dtype : {DType::int8, DType::float8_e5m2, DType::float32}) {
    EXPECT_TRUE(is_transposed(dtype, Major::extent));
    EXPECT_FALSE(is_transposed(dtype, Major::k));
    EXPECT_EQ(multiplied_major(dtype, Major::extent), Major::k);
  }
}

TEST(Sm90Design, promoted_accumulators_take_twice_the_registers) {
  const Sm90Design fast = with([](auto& d) { d.a = d.b = DType::float8_e4m3fn, d.tile_n = 128; });
  ASSERT_TRUE(is_legal(fast));
  Sm90Design promoted = fast;
  promoted.math = MmaMath::promoted;
  ASSERT_TRUE(is_legal(promoted));
  EXPECT_EQ(held_registers(promoted), 2 * held_registers(fast));
  EXPECT_EQ(accumulator_registers(promoted), accumulator_registers(fast));
}

TEST(Sm90Design, registers_of_all_warpgroups_fit_the_multiprocessor) {
  for (const int tile_m : {64, 128, 192, 256}) {
    Sm90Design design = sound;
    design.tile_m = tile_m;
    design.tile_n = tile_m == 192 ? 192 : tile_m == 256 ? 208 : 256;
    ASSERT_TRUE(accumulators_per_thread(design) <= 208);
    const RegisterBudget budget = register_budget(design);
    const int registers =
        warpgroup_threads * (budget.producer + consumer_count(design) * budget.consumer);
    EXPECT_LE(registers, 65536) << tile_m;
    EXPECT_EQ(budget.producer % 8, 0);
    EXPECT_EQ(budget.consumer % 8, 0);
    const int consumer = budget.consumer > 0 ? budget.consumer : 255;  // the hardware's maximum
    EXPECT_GT(consumer, accumulators_per_thread(design));
  }
}

TEST(Sm90Design, staging_tiles_divide_the_tile) {
  for (int tile_n = 16; tile_n <= 256; tile_n += 16) {
    for (const DType out : {DType::float16, DType::float32, DType::float8_e4m3fn}) {
      if (tile_n % 32 != 0 && bytes_of(out) == 1) continue;
      Sm90Design design = sound;
      design.tile_n = tile_n;
      design.out = out;
      EXPECT_EQ(tile_n % staging_columns(design), 0);
      const int pitch = staging_pitch_bytes(design);
      EXPECT_TRUE(pitch == 128 || pitch == 64 || pitch == 32) << pitch;
    }
  }
}

}  // namespace
}  // namespace gemmery::abi
