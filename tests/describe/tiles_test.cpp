// SPDX-License-Identifier: Apache-2.0
// Tiles, stages, warps, alignments and swizzles: the kernel that runs has the described ones.
#include <gtest/gtest.h>

#include <set>

#include "device/abi/tile_order.hpp"
#include "providers/templates/sm80/design.hpp"
#include "tests/describe/described_gemm.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/no_disk_cache.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::describe::tests {
namespace {

using DescribeTiles = gemmery::tests::WithNvrtc;
using gemmery::tests::error_of;

TEST_F(DescribeTiles, row_23_a_kernel_computes_with_the_described_tile) {
  for (const auto& tile : {std::array{128, 64, 32}, {64, 128, 64}, {64, 32, 32}}) {
    const Sketch sketch{.tile = tile};
    const GemmOperationUniversal operation = operation_of(sketch);
    EXPECT_EQ(
        operation.metadata().design_value("tile"),
        std::to_string(tile[0]) + "x" + std::to_string(tile[1]) + "x" + std::to_string(tile[2]));
    const GemmProblem problem = parse_problem("gemm 200x168x72 a=f16 b=f16:c out=f32").problem;
    const auto extents =
        templates::sm80_extents(operation.operands(), templates::sm80_tile(operation), problem);
    EXPECT_EQ(extents.tile_rows, (200U + tile[0] - 1) / tile[0]);
    EXPECT_EQ(extents.tile_columns, (168U + tile[1] - 1) / tile[1]);
    expect_exact(sketch, {{200, 168, 72}});
  }
}

TEST_F(DescribeTiles, row_24_stages) {
  for (const int stages : {2, 3, 4, 5, 10}) {
    const Sketch sketch{.stages = stages};
    expect_exact(sketch, {{72, 56, 32}, {72, 56, 32 * stages - 8}, {40, 72, 64 * stages + 8}});
  }
}

TEST_F(DescribeTiles, row_25_warps_share_blocks_of_k) {
  for (const auto& warps : {std::array{2, 1, 2}, {2, 2, 2}, {1, 1, 4}, {4, 2, 1}}) {
    const Sketch sketch{.tile = {64, 64, 128}, .stages = 2, .warps = warps};
    EXPECT_EQ(operation_of(sketch).metadata().design_value("threads"),
              std::to_string(32 * warps[0] * warps[1] * warps[2]));
    expect_exact(sketch, {{72, 56, 200}});
  }
}

TEST_F(DescribeTiles, row_27_alignments_of_f16) {
  for (const int alignment : {1, 2, 4, 8}) {
    for (const auto& layouts :
         {std::array{Layout::RowMajor, Layout::ColumnMajor, Layout::RowMajor},
          std::array{Layout::ColumnMajor, Layout::RowMajor, Layout::ColumnMajor}}) {
      const Sketch sketch{.cd = Element::float16,
                          .layouts = layouts,
                          .alignments = std::array{alignment, alignment, alignment}};
      expect_exact(sketch, {{72 + alignment, 56 + alignment, 88 + alignment}});
    }
  }
}

TEST_F(DescribeTiles, row_27_sizes_and_pointers_must_keep_the_alignment) {
  const GemmOperationUniversal operation = operation_of({.alignments = std::array{8, 4, 2}});
  const auto refused = [&](const GemmCoord& size) {
    DescribedGemm gemm(operation, size);
    gemm.upload();
    const Error error = error_of([&] { gemm.arguments(); });
    return error.operand() + ": " + error.expected() + ", " + error.got();
  };
  EXPECT_EQ(refused({16, 16, 12}), "A: K a multiple of 8, the alignment of A (RowMajor), 12");
  EXPECT_EQ(refused({16, 17, 16}), "C: N a multiple of 2, the alignment of C (RowMajor), 17");
  DescribedGemm gemm(operation, {16, 16, 16});
  gemm.upload();
  auto* const memory = static_cast<std::byte*>(gemm.d_on_device());
  const auto with_d = [&](void* d) {
    return GemmArguments(operation, {8, 8, 8}, {{memory}, {memory}, {}, {d}}, test_device());
  };
  EXPECT_EQ(error_of([&] { with_d(memory + 4); }).operand(), "D");
  with_d(memory + 512);
}

// --- swizzles -----------------------------------------------------------------------------------

struct Tile {
  unsigned row;
  unsigned column;
  friend bool operator==(const Tile&, const Tile&) = default;
};

// The order in which PyCUTLASS's IdentitySwizzleN visits tiles: block (x, y) of the grid is tile
// (x >> log, (y << log) + (x & ((1 << log) - 1))), x first; tiles out of bounds are skipped.
std::vector<Tile> identity_order(int n, unsigned rows, unsigned columns) {
  const int log = n >= 8 && columns >= 6   ? 3
                  : n >= 4 && columns >= 3 ? 2
                  : n >= 2 && columns >= 2 ? 1
                                           : 0;
  const unsigned width = 1U << log;
  std::vector<Tile> order;
  for (unsigned y = 0; y < (columns + width - 1) / width; ++y)
    for (unsigned x = 0; x < rows * width; ++x) {
      const Tile tile{x >> log, (y << log) + (x & (width - 1))};
      if (tile.column < columns) order.push_back(tile);
    }
  return order;
}

template <abi::Raster raster>
std::vector<Tile> raster_order(unsigned rows, unsigned columns) {
  const abi::TileOrder order = abi::make_tile_order(raster, rows, columns, 1);
  std::vector<Tile> tiles;
  for (unsigned index = 0; index < rows * columns; ++index) {
    const abi::TilePosition position = abi::position_of<raster>(order, index);
    tiles.push_back({position.row, position.column});
  }
  return tiles;
}

abi::Raster raster_of(SwizzlingFunctor swizzle) {
  return templates::sm80_tile(operation_of({.swizzle = swizzle})).raster;
}

template <int band>
void expect_identity(SwizzlingFunctor swizzle) {
  constexpr abi::Raster raster{.along = abi::Along::n, .band = band};
  EXPECT_EQ(raster_of(swizzle), raster);
  for (const unsigned rows : {1U, 3U, 16U})
    for (const unsigned columns : {1U, 2U, 3U, 4U, 6U, 7U, 8U, 21U})
      EXPECT_EQ(raster_order<raster>(rows, columns), identity_order(band, rows, columns))
          << rows << " x " << columns;
}

TEST_F(DescribeTiles, row_57_identity_swizzles_visit_tiles_in_the_documented_order) {
  expect_identity<1>(SwizzlingFunctor::IdentitySwizzle1);
  expect_identity<2>(SwizzlingFunctor::IdentitySwizzle2);
  expect_identity<4>(SwizzlingFunctor::IdentitySwizzle4);
  expect_identity<8>(SwizzlingFunctor::IdentitySwizzle8);
  EXPECT_EQ(raster_of(SwizzlingFunctor::HorizontalSwizzle),
            (abi::Raster{.along = abi::Along::m, .band = 1}));
}

TEST_F(DescribeTiles, row_57_swizzles_give_equal_bits) {
  std::vector<std::byte> first;
  for (const SwizzlingFunctor swizzle :
       {SwizzlingFunctor::IdentitySwizzle1, SwizzlingFunctor::IdentitySwizzle2,
        SwizzlingFunctor::IdentitySwizzle4, SwizzlingFunctor::IdentitySwizzle8,
        SwizzlingFunctor::HorizontalSwizzle, SwizzlingFunctor::BatchedIdentitySwizzle}) {
    const Sketch sketch{.tile = {32, 32, 32}, .warps = {1, 1, 1}, .swizzle = swizzle};
    DescribedGemm gemm(operation_of(sketch), {200, 264, 64});
    gemm.fill(57, -3, 3);
    gemm.run();
    EXPECT_EQ(gemm.first_difference(), "");
    if (first.empty()) first = gemm.d.memory();
    EXPECT_EQ(gemm.d.memory(), first);
  }
}

}  // namespace
}  // namespace gemmery::describe::tests
