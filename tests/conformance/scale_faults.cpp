// SPDX-License-Identifier: Apache-2.0
// The faults of sm90 kernels with scales of blocks along k, and of groups of codes.
#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {
namespace {

constexpr auto scaled = SoundKernel::scaled;
constexpr auto groups = SoundKernel::scaled_groups;
constexpr auto decoded_groups = SoundKernel::decoded_groups;

constexpr DeviceFault fault_table[] = {
    {.name = "nothing", .kernel = scaled},
    {.name = "scales are read before they have come",
     .kernel = scaled,
     .edits = {{{"abi::gathering_threads : abi::scale_parts(design));",
                 "abi::gathering_threads : 0);"}}}},
    {.name = "one part of a stage's scales is not waited for",
     .kernel = scaled,
     .edits = {{{"abi::gathering_threads : abi::scale_parts(design));",
                 "abi::gathering_threads : abi::scale_parts(design) - 1);"}}}},
    {.name = "scales are replaced while they are read",
     .kernel = scaled,
     .edits = {{{"ring_.wait_for_release(cursor_);\n    const unsigned target =",
                 "const unsigned target ="}}}},
    {.name = "scales are published before all lanes have stored theirs",
     .kernel = scaled,
     .edits = {{{"of_zeros);\n    __syncwarp();", "of_zeros);"}}},
     .on_gpu = Shows::seldom,  // lanes run in step
     .on_emulator = Shows::seldom},
    {.name = "a stage is given back before its scales are read",
     .kernel = scaled,
     .edits = {{{"scaled.add(sums, here, part);",
                 "if (part + 1 == parts && !is_last) ring_.release(stage, lane());\n"
                 "        scaled.add(sums, here, part);"},
                {"__syncwarp();\n      if (!is_last) ring_.release(stage, lane());", ""}}}},
    {.name = "products are scaled while they are computed",
     .kernel = scaled,
     .edits = {{{"ptx::wgmma_wait_group<0>();\n        scaled.add(", "scaled.add("}}}},
    {.name = "all parts have the scales of the first",
     .kernel = scaled,
     .edits = {{{"(stage * abi::scale_parts(design) + part) * part_bytes",
                 "(stage * abi::scale_parts(design)) * part_bytes"}}}},
    {.name = "scales of k beyond the end are read",
     .kernel = scaled,
     .edits = {{{"if (k < end) {", "if (k < end || end > 0) {"}}}},
    {.name = "scales of rows beyond the end are read",
     .kernel = scaled,
     .edits = {{{"min(place.row + row, row_end<design>(params_, place) - 1)", "place.row + row"}}}},
    {.name = "the second row has the scale of the first",
     .kernel = scaled,
     .edits = {{{"second * abi::second_row_distance(design)", "second * 0"}}}},
    {.name = "two columns change their scales",
     .kernel = scaled,
     .edits = {{{"of_columns[index / 4][index % 2]", "of_columns[index / 4][1 - index % 2]"}}}},
    {.name = "products are added to those of the tile before",
     .kernel = scaled,
     .edits = {{{"scaled.clear(sums);", ""}}}},
    {.name = "a warp misses its turn",
     .kernel = scaled,
     .edits = {{{"turn_ == 0 ? abi::scale_warps - 1 : turn_ - 1",
                 "turn_ == 0 ? abi::scale_warps : turn_ - 1"}}}},

    {.name = "nothing", .kernel = groups},
    {.name = "blocks of k count from the beginning of a group",
     .kernel = groups,
     .edits = {{{"return {place.group_begin, place.group_begin + depth};",
                 "return {0U, depth};"}}}},
    {.name = "tiles are replaced before the warps of scales have read them",
     .kernel = groups,
     .edits = {{{": abi::has_scales(design) ? abi::scale_warps",
                 ": abi::has_scales(design) ? 0"}}}},

    {.name = "nothing", .kernel = decoded_groups},
    {.name = "codes are those of the first group",
     .kernel = decoded_groups,
     .edits = {{{"place.batch * params_.a_batch_step", "0 * params_.a_batch_step"}}}},
    {.name = "scales are those of the first group's codes",
     .kernel = decoded_groups,
     .edits = {{{"scale_of<design.a_scales>(with_scales<design>(params_).rows, place.batch,",
                 "scale_of<design.a_scales>(with_scales<design>(params_).rows, 0,"}}}},
    {.name = "columns of the next group are stored",
     .kernel = decoded_groups,
     .edits = {{{"columns_left_ = static_cast<int>(column_end<design>(params, corner)) -",
                 "columns_left_ = static_cast<int>(params.n) -"}}}},
    {.name = "rows of tokens begin at a multiple of a tile",
     .kernel = decoded_groups,
     .edits = {{{"const int column = first_of<design.b_major>(tile.place.column);",
                 "const int column = first_of<design.b_major>(tile.place.column / "
                 "design.tile_n * design.tile_n);"}}}},
};

}  // namespace

std::span<const DeviceFault> scale_faults() noexcept { return fault_table; }

}  // namespace gemmery::conformance
