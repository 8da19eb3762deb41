// SPDX-License-Identifier: Apache-2.0
// The arithmetic that host and device code of depthwise kernels share: the layout of shared memory,
// and the designs that are refused.
#include "device/abi/depthwise_design.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <vector>

namespace gemmery::abi {
namespace {

constexpr DepthwiseDesign forward{.a = DType::bfloat16,
                                  .b = DType::bfloat16,
                                  .c = DType::bfloat16,
                                  .out = DType::bfloat16,
                                  .accumulator = DType::float32,
                                  .kind = DepthwiseKind::fprop,
                                  .channels = 8,
                                  .pixels = 4,
                                  .rows = 1,
                                  .taps = 3,
                                  .stride = 2,
                                  .lanes = 8,
                                  .has_c = false};
static_assert(is_legal(forward));

std::vector<DepthwiseDesign> designs() {
  std::vector<DepthwiseDesign> all;
  for (const DType accumulator : {DType::float32, DType::float64}) {
    for (const int channels : {1, 2, 4, 8}) {
      for (const int lanes : {1, 2, 4, 8, 16, 32}) {
        DepthwiseDesign design = forward;
        design.accumulator = accumulator;
        design.channels = channels;
        design.lanes = lanes;
        if (is_legal(design)) all.push_back(design);
      }
    }
  }
  return all;
}

TEST(DepthwiseDesign, spans_follow_from_taps_and_strides) {
  EXPECT_EQ(strip_span(forward), 3 * 2 + 3);
  EXPECT_EQ(tile_channels(forward), 64);
  EXPECT_EQ(tile_strips(forward), 32);
  EXPECT_EQ(depthwise_shared_bytes(forward, 9), 9 * 64 * 4);
  DepthwiseDesign one_by_one = forward;
  one_by_one.taps = one_by_one.stride = 1;
  EXPECT_EQ(strip_span(one_by_one), 4);
}

TEST(DepthwiseDesign, each_word_has_a_place_of_its_own) {
  for (const DepthwiseDesign& design : designs()) {
    std::set<int> places;
    for (int tap = 0; tap < 3; ++tap) {
      for (int lane = 0; lane < design.lanes; ++lane) {
        for (int channel = 0; channel < design.channels; ++channel) {
          const int place = word_place(design, tap, lane, channel);
          EXPECT_TRUE(places.insert(place).second);
          EXPECT_EQ(place / tile_channels(design), tap);
          EXPECT_EQ(channel_at(design, place % tile_channels(design)),
                    lane * design.channels + channel);
        }
      }
    }
    EXPECT_EQ(*places.rbegin() + 1, static_cast<int>(places.size()));
  }
}

// The largest number of different words in one bank that are accessed at once: threads of a warp
// access memory together up to 128 bytes.
int conflicts(const DepthwiseDesign& design, const std::function<int(int thread)>& place_of,
              int words) {
  const int word_bytes = depthwise_word_bytes(design.accumulator);
  const int together = std::min(32, 128 / (words * word_bytes));
  int most = 0;
  for (int first = 0; first < 32; first += together) {
    std::map<int, std::set<int>> banks;
    for (int thread = first; thread < first + together; ++thread) {
      for (int byte = 0; byte < words * word_bytes; byte += 4) {
        const int address = place_of(thread) * word_bytes + byte;
        banks[address / 4 % 32].insert(address / 4);
      }
    }
    for (const auto& [bank, addresses] : banks)
      most = std::max(most, static_cast<int>(addresses.size()));
  }
  return most - 1;
}

TEST(DepthwiseDesign, accesses_have_no_bank_conflicts) {
  for (const DepthwiseDesign& design : designs()) {
    const int at_once = words_at_once(design);
    for (int channel = 0; channel < design.channels; channel += at_once) {
      const auto read = [&](int thread) {
        return word_place(design, 1, thread % design.lanes, channel);
      };
      EXPECT_EQ(conflicts(design, read, at_once), 0)
          << design.channels << " channels, " << design.lanes << " lanes";
    }
    EXPECT_EQ(conflicts(
                  design, [](int thread) { return thread; }, 1),
              0)
        << "filters are stored, and parts added up, word after word";
  }
}

TEST(DepthwiseDesign, illegal_designs_are_named) {
  const auto fault_of = [](auto change) {
    DepthwiseDesign design = forward;
    change(design);
    return find_fault(design);
  };
  EXPECT_EQ(fault_of([](DepthwiseDesign& d) { d.channels = 3; }), DepthwiseFault::channels);
  EXPECT_EQ(fault_of([](DepthwiseDesign& d) { d.a = DType::float32; }), DepthwiseFault::channels);
  EXPECT_EQ(fault_of([](DepthwiseDesign& d) { d.pixels = 9; }), DepthwiseFault::pixels);
  EXPECT_EQ(fault_of([](DepthwiseDesign& d) { d.rows = 2; }), DepthwiseFault::rows);
  EXPECT_EQ(fault_of([](DepthwiseDesign& d) { d.taps = 9; }), DepthwiseFault::taps);
  EXPECT_EQ(fault_of([](DepthwiseDesign& d) { d.taps = 1; }), DepthwiseFault::stride);
  EXPECT_EQ(fault_of([](DepthwiseDesign& d) { d.lanes = 12; }), DepthwiseFault::lanes);
  EXPECT_EQ(fault_of([](DepthwiseDesign& d) {
              d.kind = DepthwiseKind::wgrad;
              d.rows = 7;
            }),
            DepthwiseFault::taps);
}

}  // namespace
}  // namespace gemmery::abi
