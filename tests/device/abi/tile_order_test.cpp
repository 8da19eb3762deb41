// SPDX-License-Identifier: Apache-2.0
// Division by multiplication, and the order in which persistent launches visit tiles, compared with
// division and an explicit loop.
#include "device/abi/tile_order.hpp"

#include "device/abi/groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/random_seed.hpp"

namespace gemmery::abi {
namespace {

constexpr unsigned end_of_numbers = 1U << 31;

// Numbers of every magnitude, as many small ones as large ones.
class Numbers {
 public:
  unsigned draw() {
    const unsigned bits = std::uniform_int_distribution<unsigned>(0, 31)(random_);
    return std::uniform_int_distribution<unsigned>(0, (1U << bits) - 1)(random_);
  }
  unsigned between(unsigned low, unsigned high) {
    return std::uniform_int_distribution<unsigned>(low, high)(random_);
  }

 private:
  std::mt19937_64 random_{gemmery::tests::random_seed()};
};

TEST(FastDivisor, divides_as_division_does) {
  Numbers numbers;
  for (int count = 0; count < 20000; ++count) {
    const unsigned divisor = numbers.draw() + 1;
    const FastDivisor fast = make_fast_divisor(divisor);
    ASSERT_EQ(fast.divisor, divisor);
    // Numbers at which the quotient changes, and the largest number.
    const unsigned multiple = numbers.draw() / divisor * divisor;
    for (const unsigned x :
         {numbers.draw(), multiple, multiple - std::min(multiple, 1U), 0U, end_of_numbers - 1})
      ASSERT_EQ(fast.divide(x), x / divisor) << x << " / " << divisor;
  }
}

TEST(FastDivisor, takes_divisors_at_the_ends_of_their_range) {
  for (unsigned shift = 0; shift <= 31; ++shift)
    for (const unsigned divisor : {(1U << shift) - (shift > 0 ? 1U : 0U), 1U << shift,
                                   (1U << shift) + (shift < 31 ? 1U : 0U)})
      for (const unsigned x : {0U, divisor - 1, divisor % end_of_numbers, end_of_numbers - 1})
        ASSERT_EQ(make_fast_divisor(divisor).divide(x), x / divisor) << x << " / " << divisor;
}

// All tiles in order, one matrix after the other, in bands of `band` lines.
std::vector<TilePosition> walk(const Raster& raster, unsigned rows, unsigned columns,
                               unsigned batches) {
  const bool is_along_m = raster.along == Along::m;
  const unsigned lines = is_along_m ? rows : columns;
  const unsigned length = is_along_m ? columns : rows;
  std::vector<TilePosition> tiles;
  for (unsigned batch = 0; batch < batches; ++batch)
    for (unsigned first = 0; first < lines; first += raster.band)
      for (unsigned along = 0; along < length; ++along)
        for (unsigned line = first; line < std::min(first + raster.band, lines); ++line)
          tiles.push_back(is_along_m ? TilePosition{batch, line, along}
                                     : TilePosition{batch, along, line});
  return tiles;
}

template <Raster raster>
void expect_the_walk(unsigned rows, unsigned columns, unsigned batches) {
  const TileOrder order = make_tile_order(raster, rows, columns, batches);
  const std::vector<TilePosition> wanted = walk(raster, rows, columns, batches);
  ASSERT_EQ(order.tiles, wanted.size());
  for (unsigned index = 0; index < order.tiles; ++index) {
    const TilePosition got = position_of<raster>(order, index);
    const unsigned batch = index / (rows * columns);
    const TilePosition in_bands =
        position_in_bands<raster>(batch, rows, columns, index % (rows * columns));
    ASSERT_TRUE(in_bands.batch == got.batch && in_bands.row == got.row &&
                in_bands.column == got.column)
        << index << " of " << rows << "x" << columns << " in bands";
    ASSERT_TRUE(got.batch == wanted[index].batch && got.row == wanted[index].row &&
                got.column == wanted[index].column)
        << index << " of " << batches << " x " << rows << "x" << columns << ": got " << got.batch
        << ", " << got.row << ", " << got.column;
  }
}

TEST(TileOrder, is_that_of_a_walk_in_bands) {
  Numbers numbers;
  for (int count = 0; count < 300; ++count) {
    const unsigned rows = numbers.between(1, 40);
    const unsigned columns = numbers.between(1, 40);
    const unsigned batches = numbers.between(1, 4);
    expect_the_walk<Raster{Along::m, 8}>(rows, columns, batches);
    expect_the_walk<Raster{Along::n, 8}>(rows, columns, batches);
    expect_the_walk<Raster{Along::m, 4}>(rows, columns, batches);
    expect_the_walk<Raster{Along::n, 16}>(rows, columns, batches);
    expect_the_walk<Raster{Along::m, 1}>(rows, columns, batches);
  }
}

// One row or column of nearly 2^31 tiles, and bands of as many.
TEST(TileOrder, reaches_the_last_of_the_most_tiles) {
  constexpr Raster raster{Along::m, 8};
  const auto last = [&](unsigned rows, unsigned columns, unsigned batches) {
    const TileOrder order = make_tile_order(raster, rows, columns, batches);
    return position_of<raster>(order, order.tiles - 1);
  };
  EXPECT_EQ(last(1, end_of_numbers - 1, 1).column, end_of_numbers - 2);
  EXPECT_EQ(last(end_of_numbers - 1, 1, 1).row, end_of_numbers - 2);
  EXPECT_EQ(last(1, 1, end_of_numbers - 1).batch, end_of_numbers - 2);
  const TilePosition corner = last(46337, 46337, 1);
  EXPECT_EQ(corner.row, 46336U);
  EXPECT_EQ(corner.column, 46336U);
}

TEST(TileOrder, of_nothing_has_no_tiles) {
  EXPECT_EQ(make_tile_order({Along::m, 8}, 0, 5, 2).tiles, 0U);
  EXPECT_EQ(make_tile_order({Along::n, 8}, 5, 5, 0).tiles, 0U);
}

}  // namespace
}  // namespace gemmery::abi
