// SPDX-License-Identifier: Apache-2.0
// Shared memory of sm80 designs: every chunk has a different offset, and no access has a bank
// conflict.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <gemmery/discovery.hpp>

#include "device/abi/sm80_faults.hpp"
#include "providers/templates/sm80/design.hpp"

namespace gemmery::abi {
namespace {

constexpr int lanes = 32;
constexpr int bank_bytes = 4;
constexpr int banks = 32;

// The number of wavefronts of one instruction with these addresses, `bytes` each: different words
// in one bank need different wavefronts. Accesses of 8 and 16 bytes proceed by half and quarter
// warps.
int wavefronts(const std::vector<int>& addresses, int bytes) {
  const std::size_t at_once = static_cast<std::size_t>(lanes * bank_bytes / bytes);
  int all = 0;
  for (std::size_t first = 0; first < addresses.size(); first += at_once) {
    std::array<std::set<int>, banks> words;
    for (std::size_t at = first; at < first + at_once && at < addresses.size(); ++at)
      for (int byte = 0; byte < bytes; byte += bank_bytes) {
        const int word = (addresses[at] + byte) / bank_bytes;
        words[static_cast<std::size_t>(word % banks)].insert(word);
      }
    std::size_t most = 0;
    for (const auto& bank : words) most = std::max(most, bank.size());
    all += static_cast<int>(most);
  }
  return all;
}

int bytes_of_load(const StagedOperand& operand) {
  switch (operand.load) {
    case FragmentLoad::matrices:
    case FragmentLoad::transposed_matrices:
      return 16;
    case FragmentLoad::chunks:
      return 16;
    case FragmentLoad::pairs:
    case FragmentLoad::codes:
      return 8;
    default:
      return operand.dtype == DType::float64 ? 8 : 4;
  }
}

// Checks one warp's copies of 16 bytes, in the order in which threads copy chunks.
void expect_copies_without_conflicts(const StagedOperand& operand, int threads,
                                     const std::string& name) {
  if (!operand.is_async() || operand.vector_bytes != chunk_bytes) return;
  for (int warp = 0; warp < threads / lanes; ++warp) {
    std::vector<int> addresses;
    for (int lane = 0; lane < lanes; ++lane) {
      const int thread = warp * lanes + lane;
      if (thread / operand.chunks() < operand.rows())
        addresses.push_back(operand.offset(thread / operand.chunks(), thread % operand.chunks()));
    }
    EXPECT_LE(wavefronts(addresses, chunk_bytes), 4) << name;
  }
}

void expect_loads_without_conflicts(const StagedOperand& operand, Side side, int step_k,
                                    const std::string& name) {
  const int least = lanes * bytes_of_load(operand) / (banks * bank_bytes);
  for (int first = 0; first + 16 <= operand.extent; first += 16)
    for (int k = 0; k + step_k <= operand.k; k += step_k) {
      std::vector<int> addresses;
      for (int lane = 0; lane < lanes; ++lane)
        addresses.push_back(fragment_offset(operand, side, first, k, lane));
      ASSERT_EQ(wavefronts(addresses, bytes_of_load(operand)), least)
          << name << ", first " << first << ", k " << k;
    }
}

void expect_places_of_their_own(const StagedOperand& operand, const std::string& name) {
  std::set<int> places;
  for (int row = 0; row < operand.rows(); ++row)
    for (int chunk = 0; chunk < operand.chunks(); ++chunk)
      places.insert(operand.offset(row, chunk));
  EXPECT_EQ(places.size(), static_cast<std::size_t>(operand.rows() * operand.chunks())) << name;
  EXPECT_EQ(*places.rbegin(), operand.bytes() - chunk_bytes) << name;
}

// Each layout once, since operands of many designs have the same.
TEST(Sm80Design, no_access_to_shared_memory_meets_another_in_a_bank) {
  std::set<std::string> seen;
  for_each_kernel(
      [&](const Kernel& kernel) {
        if (kernel.family().name() != "sm80") return;
        const Sm80Design design = templates::sm80_design(kernel);
        for (const Side side : {Side::a, Side::b}) {
          const StagedOperand operand = side == Side::a ? staged_a(design) : staged_b(design);
          const std::string key =
              std::to_string(static_cast<int>(operand.load)) + " " +
              std::to_string(bits_of(operand.dtype)) + " " + std::to_string(operand.extent) + "x" +
              std::to_string(operand.k) + " " + std::to_string(operand.vector_bytes) + " " +
              std::to_string(operand.is_k_adjacent) + " " + std::to_string(thread_count(design)) +
              " " + std::to_string(static_cast<int>(side));
          if (!seen.insert(key).second) continue;
          expect_places_of_their_own(operand, key);
          expect_copies_without_conflicts(operand, thread_count(design), key);
          expect_loads_without_conflicts(operand, side, step_k(design), key);
        }
      },
      {.providers = {"templates"}});
  EXPECT_GT(seen.size(), 100U);
}

TEST(Sm80Design, a_wrong_swizzle_is_seen) {
  StagedOperand operand{.dtype = DType::float16,
                        .is_k_adjacent = true,
                        .vector_bytes = 16,
                        .extent = 64,
                        .k = 64,
                        .load = FragmentLoad::matrices};
  std::vector<int> plain;
  for (int lane = 0; lane < lanes; ++lane)
    plain.push_back(lane % 16 * operand.row_bytes() + lane / 16 * chunk_bytes);
  EXPECT_EQ(wavefronts(plain, 16), 32);
}

TEST(Sm80Design, names_the_field_that_is_at_fault) {
  const Sm80Design sound{.a = DType::bfloat16,
                         .b = DType::bfloat16,
                         .c = DType::bfloat16,
                         .out = DType::bfloat16,
                         .accumulator = DType::float32,
                         .math = MmaMath::native,
                         .a_major = Major::k,
                         .b_major = Major::k,
                         .a_vector_bytes = 16,
                         .b_vector_bytes = 16,
                         .c_vector_bytes = 16,
                         .out_vector_bytes = 16,
                         .tile_m = 128,
                         .tile_n = 128,
                         .tile_k = 32,
                         .warps_m = 2,
                         .warps_n = 2,
                         .warps_k = 1,
                         .stages = 4,
                         .split = SplitMode::none,
                         .raster = {.along = Along::m, .band = 8},
                         .has_c = false};
  EXPECT_EQ(find_fault(sound), Sm80Fault::none);
  const auto fault_with = [&](auto change) {
    Sm80Design design = sound;
    change(design);
    return find_fault(design);
  };
  EXPECT_EQ(fault_with([](auto& d) { d.b = DType::float16; }), Sm80Fault::operand_types);
  EXPECT_EQ(fault_with([](auto& d) { d.math = MmaMath::tf32; }), Sm80Fault::math);
  EXPECT_EQ(fault_with([](auto& d) { d.accumulator = DType::float16; }), Sm80Fault::accumulator);
  EXPECT_EQ(fault_with([](auto& d) { d.mma_k = 8; }), Sm80Fault::none);
  EXPECT_EQ(fault_with([](auto& d) { d.mma_k = 4; }), Sm80Fault::mma_k);
  EXPECT_EQ(fault_with([](auto& d) { d.groups = GroupSchedule::persistent; }), Sm80Fault::none);
  EXPECT_EQ(fault_with([](auto& d) {
              d.groups = GroupSchedule::device;
              d.split = SplitMode::parallel;
            }),
            Sm80Fault::groups);
  EXPECT_EQ(fault_with([](auto& d) { d.clears_outside = true; }), Sm80Fault::groups);
  EXPECT_EQ(fault_with([](auto& d) { d.has_indices = true; }), Sm80Fault::indices);
  EXPECT_EQ(fault_with([](auto& d) {
              d.groups = GroupSchedule::device;
              d.has_indices = true;
              d.a_major = Major::extent;
            }),
            Sm80Fault::indices);
  EXPECT_EQ(fault_with([](auto& d) {
              d.a = d.b = DType::float32;
              d.math = MmaMath::tf32;
              d.mma_k = 8;
            }),
            Sm80Fault::mma_k);
  EXPECT_EQ(fault_with([](auto& d) { d.out = DType::int8; }), Sm80Fault::out_type);
  EXPECT_EQ(fault_with([](auto& d) { d.a_vector_bytes = 32; }), Sm80Fault::a_vector_bytes);
  EXPECT_EQ(fault_with([](auto& d) { d.b_vector_bytes = 1; }), Sm80Fault::b_vector_bytes);
  EXPECT_EQ(fault_with([](auto& d) { d.tile_m = 96; }), Sm80Fault::tile_m);
  EXPECT_EQ(fault_with([](auto& d) { d.tile_n = 512; }), Sm80Fault::tile_n);
  EXPECT_EQ(fault_with([](auto& d) { d.tile_k = 16; }), Sm80Fault::tile_k);
  EXPECT_EQ(fault_with([](auto& d) { d.warps_n = 3; }), Sm80Fault::warps);
  EXPECT_EQ(fault_with([](auto& d) { d.warps_n = 0; }), Sm80Fault::warps);
  EXPECT_EQ(fault_with([](auto& d) {  // a row of 64 chunks, copied by 32 threads
              d.a = d.b = DType::float32;
              d.math = MmaMath::tf32;
              d.b_major = Major::extent;
              d.tile_m = 16, d.tile_n = 256;
              d.warps_m = d.warps_n = 1;
              d.stages = 2;
            }),
            Sm80Fault::warps);
  EXPECT_EQ(fault_with([](auto& d) { d.stages = 1; }), Sm80Fault::stages);
  EXPECT_EQ(fault_with([](auto& d) { d.tile_m = d.tile_n = 256; }), Sm80Fault::accumulators);
  EXPECT_EQ(fault_with([](auto& d) { d.tile_k = 128, d.stages = 8; }), Sm80Fault::shared_bytes);
}

}  // namespace
}  // namespace gemmery::abi
