// SPDX-License-Identifier: Apache-2.0
// The table of planted faults, and the sources with a fault in them.
#include "tests/conformance/device_faults.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/invariant.hpp"
#include "jit/embedded.hpp"

namespace gemmery::conformance {
namespace {

constexpr auto simt = SoundKernel::simt;
constexpr auto cooperative = SoundKernel::cooperative;
constexpr auto ping_pong = SoundKernel::ping_pong;
constexpr auto pair = SoundKernel::pair_of_blocks;
constexpr auto chained = SoundKernel::chained;
constexpr auto split = SoundKernel::split;
constexpr auto repacked = SoundKernel::repacked;
constexpr auto transposed = SoundKernel::transposed;
constexpr auto registers = SoundKernel::registers;
constexpr auto decoded = SoundKernel::decoded;
constexpr auto promoted = SoundKernel::promoted;
constexpr auto bf16_parts = SoundKernel::bf16_parts;
constexpr auto tf32_parts = SoundKernel::tf32_parts;
constexpr auto rotation = SoundKernel::rotation;
constexpr auto addition = SoundKernel::addition;
constexpr auto reduction = SoundKernel::reduction;
constexpr auto parts = SoundKernel::parallel;
constexpr auto serial_parts = SoundKernel::serial;
constexpr auto stream = SoundKernel::stream;
constexpr auto cluster_parts = SoundKernel::cluster_parts;
constexpr auto promoted_parts = SoundKernel::promoted_parts;
constexpr auto transposed_parts = SoundKernel::transposed_parts;
constexpr auto part_reduction = SoundKernel::part_reduction;
constexpr auto mma = SoundKernel::mma;
constexpr auto parallel = SoundKernel::mma_parallel;
constexpr auto serial = SoundKernel::mma_serial;
constexpr auto narrow = SoundKernel::mma_narrow;

constexpr Edit late_zero = {"ptx::st_relaxed_gpu(result_, 0);",
                            "for (long long begin = clock64(); clock64() - begin < 200000;) {}\n"
                            "      ptx::st_relaxed_gpu(result_, 0);"};

constexpr DeviceFault fault_table[] = {
    {.name = "nothing", .kernel = simt},
    {.name = "no barrier after a block of k",
     .kernel = simt,
     .edits = {{{"ptx::cp_async_wait_group<design.stages - 2>();\n    __syncthreads();",
                 "ptx::cp_async_wait_group<design.stages - 2>();"}}}},
    {.name = "one group too many under way",
     .kernel = simt,
     .edits = {{{"cp_async_wait_group<design.stages - 2>",
                 "cp_async_wait_group<design.stages - 1>"}}}},
    {.name = "copies that belong to no group",
     .kernel = simt,
     .edits = {{{"ptx::cp_async_commit_group();", ""}}}},
    {.name = "the ring is one slot short",
     .kernel = simt,
     .edits = {{{"slot == (design.stages - 1) * bytes", "slot == (design.stages - 2) * bytes"}}}},
    {.name = "slots given up before all have read them",
     .kernel = simt,
     .edits = {{{"ptx::cp_async_wait_group<0>();\n    __syncthreads();",
                 "ptx::cp_async_wait_group<0>();"}}}},
    {.name = "no barrier before sums are read",
     .kernel = simt,
     .edits = {{{"sums[index * per_slice] = value; });\n      __syncthreads();",
                 "sums[index * per_slice] = value; });"}}}},
    {.name = "sums overlap by one",
     .kernel = simt,
     .edits = {{{"sums[index * per_slice] = value;", "sums[index * per_slice + 1] = value;"}}}},
    {.name = "accumulators never cleared",
     .kernel = simt,
     .edits = {{{"for_each_sum([](int, Number& sum) { sum = Number{0}; });", ""}}},
     .on_gpu = Shows::seldom},  // fresh registers are mostly 0: caught in some runs
    {.name = "stores a column too many",
     .kernel = simt,
     .edits = {{{"tile_column >= columns_left", "tile_column > columns_left"}}}},
    {.name = "stores a row too many",
     .kernel = simt,
     .edits = {{{"tile_row >= rows_left", "tile_row > rows_left"}}}},
    {.name = "reads beyond the end of k",
     .kernel = simt,
     .edits = {{{"return clamp(k_left - k_ - Units::pass_k(pass), 0, Units::k);",
                 "return Units::k;"}}}},
    {.name = "reads beyond the last row",
     .kernel = simt,
     .edits = {{{"return clamp(extent_left_ - extent_ - Units::pass_extent(pass), 0, "
                 "Units::extent);",
                 "return Units::extent;"}}}},

    {.name = "nothing", .kernel = mma},
    {.name = "nothing", .kernel = parallel},
    {.name = "nothing", .kernel = serial},
    {.name = "no barrier after a block of k",
     .kernel = mma,
     .edits = {{{"ptx::cp_async_wait_group<design.stages - 2>();\n    __syncthreads();",
                 "ptx::cp_async_wait_group<design.stages - 2>();"}}}},
    {.name = "one group too many under way",
     .kernel = mma,
     .edits = {{{"cp_async_wait_group<design.stages - 2>",
                 "cp_async_wait_group<design.stages - 1>"}}}},
    {.name = "copies that belong to no group",
     .kernel = mma,
     .edits = {{{"ptx::cp_async_commit_group();", "", true}}}},
    {.name = "the ring is one stage short",
     .kernel = mma,
     .edits = {{{"stage == (design.stages - 1) * bytes_of_stage",
                 "stage == (design.stages - 2) * bytes_of_stage"}}}},
    {.name = "stages given up before all have read them",
     .kernel = mma,
     .edits = {{{"ptx::cp_async_wait_group<0>();\n    __syncthreads();",
                 "ptx::cp_async_wait_group<0>();"}}},
     .on_gpu = Shows::seldom},
    {.name = "ldmatrix takes rows of another matrix",
     .kernel = mma,
     .edits = {{{"const int row = lane % 8 + 8 * (side == Side::a ? eighth : half);",
                 "const int row = lane % 8 + 8 * (side == Side::a ? half : eighth);"}}}},
    {.name = "chunks are copied without the swizzle",
     .kernel = mma,
     .edits =
         {{{"target_(tile + static_cast<unsigned>(abi::value_of<operand>().offset(row_, chunk_)))",
            "target_(tile + static_cast<unsigned>(row_ * operand.row_bytes() + 16 * chunk_))",
            true}}}},
    {.name = "reads beyond the end of k",
     .kernel = mma,
     .edits = {{{"return min(max(left, 0), abi::chunk_bytes);", "return abi::chunk_bytes;"}}}},
    {.name = "reads beyond the last row",
     .kernel = mma,
     .edits = {{{"if (row >= lines) return 0;", "if (row > lines) return 0;"}}}},
    {.name = "accumulators never cleared",
     .kernel = mma,
     .edits = {{{"clear();\n    const TileCorner corner", "const TileCorner corner"}}},
     .on_gpu = Shows::seldom},
    {.name = "no barrier before a slice is added",
     .kernel = mma,
     .edits = {{{"__syncthreads();\n      if (place_.slice == 0) {", "if (place_.slice == 0) {"}}}},
    {.name = "slices overlap by one",
     .kernel = mma,
     .edits = {{{"staged[(index * Accumulator::numbers + at) * per_slice] = values[at];",
                 "staged[(index * Accumulator::numbers + at) * per_slice + 1] = values[at];"}}}},
    {.name = "the staging tile is read before all have filled it",
     .kernel = mma,
     .edits = {{{"write(sums, block);\n    }\n    __syncthreads();",
                 "write(sums, block);\n    }"}}}},
    {.name = "the staging tile is filled while it is read",
     .kernel = mma,
     .edits = {{{"int index, bool holds_sums) const {\n    __syncthreads();",
                 "int index, bool holds_sums) const {"}}}},
    {.name = "stores a row too many",
     .kernel = mma,
     .edits = {{{"row >= params_.m || column >= params_.n) continue;",
                 "row > params_.m || column >= params_.n) continue;"}}}},
    {.name = "stores a column too many",
     .kernel = mma,
     .edits = {{{"min(params_.n - column, static_cast<unsigned>(columns))",
                 "min(params_.n - column + 1, static_cast<unsigned>(columns))"}}}},
    {.name = "a part counts before it is written",
     .kernel = parallel,
     .edits = {{{"team.sync();\n  if (team.thread() == 0) *team.flag() =",
                 "if (team.thread() == 0) *team.flag() ="}}},
     .on_gpu = Shows::seldom},
    {.name = "the last but one to arrive adds up",
     .kernel = parallel,
     .edits = {{{"if (*team.flag() + 1 != share.slices) return false;",
                 "if (*team.flag() + 2 != share.slices) return false;"}}}},
    {.name = "parts of other tiles are added",
     .kernel = parallel,
     .edits = {{{"return share.slot - share.slice + slice;", "return share.slot + slice;"}}}},
    {.name = "no wait for the slice before",
     .kernel = serial,
     .edits = {{{"while (ptx::ld_acquire_gpu(counter) != share.slice)", "while (false)"}}}},
    {.name = "the turn is passed before all have left their accumulators",
     .kernel = serial,
     .edits = {{{"team.sync();\n  if (team.thread() == 0) ptx::st_release_gpu(counter,",
                 "if (team.thread() == 0) ptx::st_release_gpu(counter,"}}},
     .on_gpu = Shows::seldom},
    {.name = "the turn is passed without a release",
     .kernel = serial,
     .edits = {{{"ptx::st_release_gpu(counter,", "ptx::st_relaxed_gpu(counter,"}}},
     .on_gpu = Shows::seldom},

    {.name = "nothing", .kernel = narrow},
    {.name = "the second instruction takes the first half of B",
     .kernel = narrow,
     .edits = {{{"ptx::mma_m16n8k8<is_bfloat16>(sums, a[2], a[3], b[1]);",
                 "ptx::mma_m16n8k8<is_bfloat16>(sums, a[2], a[3], b[0]);"}}}},
    {.name = "trailing parts are not multiplied",
     .kernel = narrow,
     .edits = {{{"multiply_once(step, a.low, b.high);", ""}}}},
    {.name = "a trailing part is its neighbour's",
     .kernel = narrow,
     .edits = {{{"rest_of_float16(first, high[at] & 0xffffU)",
                 "rest_of_float16(second, high[at] >> 16)"}}}},
    {.name = "a step's products take the place of those before",
     .kernel = narrow,
     .edits = {{{"sums[at] += step[at];", "sums[at] = step[at];"}}}},

    {.name = "nothing", .kernel = cooperative},
    {.name = "nothing", .kernel = ping_pong},
    {.name = "nothing", .kernel = pair},
    {.name = "nothing", .kernel = chained},
    {.name = "nothing", .kernel = split},
    {.name = "no wait for a full stage",
     .kernel = cooperative,
     .edits = {{{"wait_for_phase(full(cursor.stage), cursor.phase);", ""}}}},
    {.name = "no wait for an empty stage",
     .kernel = cooperative,
     .edits = {{{"wait_for_phase(empty(cursor.stage), cursor.phase ^ 1U);", ""}}}},
    {.name = "a stage is full before its last bytes",
     .kernel = cooperative,
     .edits = {{{"params_.a_bytes + params_.b_bytes;",
                 "params_.a_bytes + params_.b_bytes - 8192;"}}}},
    {.name = "a stage is given back while it is multiplied",
     .kernel = cooperative,
     .edits = {{{"if (is_later) ring_.release(previous, lane());", "ring_.release(stage, lane());"},
                {"ring_.release(last_stage, lane());", ""}}},
     .on_gpu = Shows::seldom},  // wgmma has read it before a copy that is asked for then comes
    {.name = "sums keep what was in the registers",
     .kernel = cooperative,
     .edits = {{{"keeps_sums || step > 0", "true"}}}},
    {.name = "the last block of k is lost",
     .kernel = cooperative,
     .edits = {{{"params_.k_blocks", "(params_.k_blocks > 1 ? params_.k_blocks - 1 : 1)", true}}}},
    {.name = "batches of B in reverse",
     .kernel = cooperative,
     .edits = {{{"place.batch * params_.b_batch_step",
                 "(params_.order.tiles / params_.order.matrix.divisor - 1 - place.batch) * "
                 "params_.b_batch_step"}}}},
    {.name = "a staging tile is filled while it is stored",
     .kernel = cooperative,
     .edits = {{{"ptx::bulk_wait_group_read<abi::staging_tiles_per_consumer - 1>();", ""}}}},
    {.name = "the last staging tile of a tile is not sent",
     .kernel = cooperative,
     .edits = {{{"output.flush(place);", ""}}}},
    {.name = "a block leaves while its staging tiles are stored",
     .kernel = cooperative,
     .edits = {{{"if (sends_by_all || ptx::elect_sync()) ptx::bulk_wait_group_read<0>();", ""}}},
     .on_gpu = Shows::seldom},
    {.name = "no proxy fence before a staging tile is stored",
     .kernel = cooperative,
     .edits = {{{"ptx::fence_proxy_async();\n    __syncwarp();", "__syncwarp();"}}},
     .on_gpu = Shows::seldom},
    {.name = "rows that no copy brings are not cleared",
     .kernel = cooperative,
     .edits = {{{"clear<sizeof shared_.a[0]>(a, a_bytes - a_brought);",
                 "clear<sizeof shared_.a[0]>(a, 0);"}}},
     .on_gpu = Shows::seldom},  // they go nowhere
    {.name = "no fence after barriers are initialised",
     .kernel = cooperative,
     .edits = {{{"ptx::fence_mbarrier_init();", ""}}},
     .on_gpu = Shows::seldom,
     .on_emulator = Shows::seldom},
    {.name = "a row too many in the map of out",
     .kernel = cooperative,
     .maps_a_row_too_many = true},
    {.name = "a row too many is stored by elements",
     .kernel = cooperative,
     .edits = {{{"static_cast<int>(ends.row - corner.row),",
                 "static_cast<int>(ends.row - corner.row) + 1,"}}}},
    {.name = "no turns",
     .kernel = ping_pong,
     .edits = {{{"if (takes_turns && !tiles.is_first()) wait_for_turn(consumer);", ""},
                {"if (takes_turns && !tiles.is_last()) pass_turn<turns>(consumer);", ""}}}},
    {.name = "both consumers take every tile",
     .kernel = ping_pong,
     .edits = {{{"if constexpr (takes_turns) skip_tiles(consumer);", ""}}}},
    {.name = "arrives in a cluster that is not ready",
     .kernel = pair,
     .edits = {{{"sync_cluster();\n    ptx::griddepcontrol_wait();",
                 "__syncthreads();\n    ptx::griddepcontrol_wait();"}}}},
    {.name = "leaves before the other block has arrived",
     .kernel = pair,
     .edits = {{{"if constexpr (cluster_size > 1) sync_cluster();", ""}}}},
    {.name = "half of the consumers make a stage empty",
     .kernel = pair,
     .edits = {{{"consumer_warps * sharing_blocks", "consumer_warps"}}}},
    {.name = "both blocks bring the same half",
     .kernel = pair,
     .edits = {{{"source.along_extent(extent, rank * half)",
                 "source.along_extent(extent, 0 * half)"}}}},
    {.name = "sums of the other block are not waited for",
     .kernel = split,
     .edits = {{{"wait_for_phase(full_, phase_);", ""}}}},
    {.name = "sums come before others are added",
     .kernel = split,
     .edits = {{{"wait_for_phase(free_, phase_ ^ 1U);", ""}}},
     .on_gpu = Shows::seldom},
    {.name = "a block's own sums are left out",
     .kernel = split,
     .edits = {{{"ptx::st_shared_v4(own + offset, values);", ""}}}},
    {.name = "every block multiplies the same share of k",
     .kernel = split,
     .edits = {{{"split_rank() * params_.k_blocks * tile_k", "0U"}}}},
    {.name = "blocks store each other's columns",
     .kernel = split,
     .edits = {{{"split_rank() * abi::stored_of<design>().tile_n",
                 "(split_rank() ^ 1U) * abi::stored_of<design>().tile_n"}}}},

    {.name = "nothing", .kernel = rotation},
    {.name = "the turn is passed before the tile is multiplied",
     .kernel = rotation,
     .edits = {{{"if (takes_turns && !tiles.is_first()) wait_for_turn(consumer);",
                 "if (takes_turns && !tiles.is_first()) wait_for_turn(consumer);\n"
                 "      if (takes_turns && !tiles.is_last()) pass_turn<turns>(consumer);"},
                {"if (takes_turns && !tiles.is_last()) pass_turn<turns>(consumer);\n"
                 "    return last;",
                 "return last;"}}}},
    {.name = "the turn is not waited for",
     .kernel = rotation,
     .edits = {{{"if (takes_turns && !tiles.is_first()) wait_for_turn(consumer);", ""}}}},
    {.name = "the turn goes to the consumer before",
     .kernel = rotation,
     .edits = {{{"(consumer + 1 == count ? 0 : consumer + 1)",
                 "(consumer == 0 ? count - 1 : consumer - 1)"}}}},
    {.name = "a staging tile is filled while it is stored",
     .kernel = rotation,
     .edits = {{{"ptx::bulk_wait_group_read<abi::staging_tiles_per_consumer - 1>();", ""}}}},
    {.name = "vectors are replaced while they are read",
     .kernel = rotation,
     .edits = {{{"if constexpr (Staged::has_vectors()) "
                 "ptx::bar_sync<abi::warpgroup_threads>(1 + consumer_);\n"
                 "    if (!holds_output(place)) return;",
                 "if (!holds_output(place)) return;"}}}},
    {.name = "vectors are read before all have brought them",
     .kernel = rotation,
     .edits = {{{"staged_.wait_for_vectors();\n"
                 "      ptx::bar_sync<abi::warpgroup_threads>(1 + consumer_);",
                 "staged_.wait_for_vectors();"}}},
     .on_gpu = Shows::seldom},  // they come while the tile is multiplied
    {.name = "vectors are read while they come",
     .kernel = rotation,
     .edits = {{{"if constexpr (has_vectors() || addend_input >= 0) "
                 "ptx::cp_async_wait_group<0>();",
                 ""}}},
     .on_gpu = Shows::seldom},

    {.name = "nothing", .kernel = addition},
    {.name = "an addend is multiplied while it comes",
     .kernel = addition,
     .edits = {{{"if constexpr (has_vectors() || addend_input >= 0) "
                 "ptx::cp_async_wait_group<0>();",
                 ""}}},
     .on_gpu = Shows::seldom},  // it comes a tile ahead
    {.name = "an addend is not made known to wgmmas",
     .kernel = addition,
     .edits = {{{"ptx::fence_proxy_async();\n    ptx::bar_sync<abi::warpgroup_threads>",
                 "ptx::bar_sync<abi::warpgroup_threads>"}}},
     .on_gpu = Shows::seldom},
    {.name = "an addend is multiplied before all have brought it",
     .kernel = addition,
     .edits = {{{"ptx::bar_sync<abi::warpgroup_threads>(1 + consumer_);\n"
                 "    return staged_.next_addend();",
                 "return staged_.next_addend();"}}},
     .on_gpu = Shows::seldom},
    {.name = "the next addend comes where this one is",
     .kernel = addition,
     .edits = {{{"vector_ + (current_ ^ vector_bytes) +", "vector_ + current_ +"}}}},
    {.name = "the addend is that of the tile before",
     .kernel = addition,
     .edits = {{{"addend_.advance();", ""}}}},
    {.name = "the second 8 k of an addend are no zeros",
     .kernel = addition,
     .edits = {{{"const unsigned word = index < row_units ? one << 16 | one : 0;",
                 "const unsigned word = index < 4096 * row_units ? one << 16 | one : 0;"}}}},
    {.name = "an addend is added twice",
     .kernel = addition,
     .edits = {{{"patch.words[input][0][0] = 0x80008000;",
                 "patch.words[input][0][0] = 0x3f803f80;"}}}},

    {.name = "nothing", .kernel = reduction},
    {.name = "a word is written without its mark",
     .kernel = reduction,
     .edits = {{{"ptx::st_relaxed_gpu_b64(words_ + group, word_of(part));",
                 "ptx::st_relaxed_gpu_b64(words_ + group, word_of(part) & 0xffffffffU);"}}}},
    {.name = "words are read without asking for their marks",
     .kernel = reduction,
     .edits = {{{"while (!read(words, first)) {\n      }", "read(words, first);"}}}},
    {.name = "words are not cleared for the next launch",
     .kernel = reduction,
     .edits = {{{"for (unsigned group = lane; group < groups_; group += 32)\n"
                 "      ptx::st_relaxed_gpu_b64(words_ + group, 0);",
                 ""}}}},
    {.name = "parts of warps are read before all are there",
     .kernel = reduction,
     .edits = {{{"share_parts(staged);\n    ptx::bar_sync<abi::warpgroup_threads>(1 + consumer_);",
                 "share_parts(staged);"}}}},
    {.name = "magnitudes are put on top of what was there",
     .kernel = reduction,
     .edits = {{{"ptx::st_relaxed_gpu(result_, 0);", ""}}}},
    // In these kernels the zero is written late. Kernels without the fault wait for it.
    {.name = "magnitudes are put in before the result is open",
     .kernel = reduction,
     .edits = {{{"ptx::bar_sync<opening_threads>(first_opening_barrier + consumer_);", ""},
                late_zero}}},
    {.name = "no block waits until the result is open",
     .kernel = reduction,
     .edits = {{{"while (ptx::ld_acquire_gpu(is_open_) == 0) {\n    }", ""}, late_zero}}},
    {.name = "a result is open before it is 0",
     .kernel = reduction,
     .edits = {{{"ptx::st_relaxed_gpu(result_, 0);\n      ptx::st_release_gpu(is_open_, 1);",
                 "ptx::st_release_gpu(is_open_, 1);\n      ptx::st_relaxed_gpu(result_, 0);"},
                late_zero}}},
    {.name = "a result stays open for the next launch",
     .kernel = reduction,
     .edits = {{{"ptx::st_relaxed_gpu(is_open_, 0);", ";"}, late_zero}}},

    {.name = "nothing", .kernel = transposed},
    {.name = "no proxy fence after transposition",
     .kernel = transposed,
     .edits = {{{"ptx::fence_proxy_async();\n    ptx::bar_sync<warps * 32>",
                 "ptx::bar_sync<warps * 32>"}}},
     .on_gpu = Shows::seldom},
    {.name = "no barrier after transposition",
     .kernel = transposed,
     .edits = {{{"ptx::bar_sync<warps * 32>(first_barrier + (takes_turns ? consumer_ : 0));",
                 "static_cast<void>(first_barrier);"}}}},
    {.name = "squares are written while they are read",
     .kernel = transposed,
     .edits = {{{"__syncwarp();\n#pragma unroll\n    for (unsigned which",
                 "#pragma unroll\n    for (unsigned which"},
                {"__syncwarp();\n#pragma unroll\n      for (unsigned step",
                 "#pragma unroll\n      for (unsigned step"}}}},
    {.name = "the first squares are not transposed",
     .kernel = transposed,
     .edits = {{{"for (unsigned part = warp;", "for (unsigned part = warp == 0 ? warps : warp;"}}}},
    {.name = "two rows of a block change places",
     .kernel = transposed,
     .edits = {{{"abi::write_offset(lane_, square, half, 2 * pair + row)",
                 "abi::write_offset(lane_, square, half, 2 * pair + 1 - row)"}}}},
    {.name = "B is transposed and A is not",
     .kernel = transposed,
     .edits = {{{"transposer_.take(at, part % Transposer::parts);",
                 "if (atom >= a_atoms) transposer_.take(at, part % Transposer::parts);"}}}},

    {.name = "nothing", .kernel = registers},
    {.name = "fragments are overwritten while they are multiplied",
     .kernel = registers,
     .edits = {{{"ptx::wgmma_wait_group<1>();\n      if (step == 0) pass_first();",
                 "if (step == 0) pass_first();"}}},
     .on_gpu = Shows::seldom},
    {.name = "no fence between fragments and wgmmas",
     .kernel = registers,
     .edits = {{{"if constexpr (row == 0) ptx::wgmma_fence();\n  ptx::wgmma<row, MultipliedMajors",
                 "ptx::wgmma<row, MultipliedMajors"}}}},
    {.name = "a stage is given back before its last wgmmas",
     .kernel = registers,
     .edits = {{{"if (k_block > 0) ring_.release(previous, lane());\n      });",
                 "ring_.release(stage, lane());\n      });"},
                {"ring_.release(last_stage, lane());", ""}}},
     .on_gpu = Shows::seldom},
    {.name = "lanes give their words in one order",
     .kernel = registers,
     .edits = {{{"return lane % 4 < 2 ?", "return lane % 4 < 4 ?"}}}},
    {.name = "lines of k are read in their own order",
     .kernel = registers,
     .edits = {{{"(lane / 8 % 2) ^ (quarter / 2)", "lane / 8 % 2"}}}},
    {.name = "every step multiplies the first k of A",
     .kernel = registers,
     .edits = {{{"a.read(words, a_stage, first + step + 1)", "a.read(words, a_stage, 0)"}}}},
    {.name = "a lane's rows are eight apart",
     .kernel = registers,
     .edits = {{{"has_row_pairs(design) ? lane / 4 * 2 : lane / 4", "lane / 4"}}}},
    {.name = "a pair of rows at the last row",
     .kernel = registers,
     .edits = {{{"if (has_pairs && rows_left_ > 1)", "if (has_pairs && rows_left_ > 0)"}}}},
    {.name = "a column too many",
     .kernel = registers,
     .edits = {{{"if (columns_left_ <= column) continue;",
                 "if (columns_left_ < column) continue;"}}}},
    {.name = "both rows of a pair change places",
     .kernel = registers,
     .edits = {{{"return {{results[2 * first + element], results[2 * second + element]}};",
                 "return {{results[2 * second + element], results[2 * first + element]}};"}}}},

    {.name = "nothing", .kernel = decoded},
    {.name = "decoded codes are overwritten while they are multiplied",
     .kernel = decoded,
     .edits = {{{"ptx::wgmma_wait_group<1>();\n      if (step == 0) pass_first();",
                 "if (step == 0) pass_first();"}}},
     .on_gpu = Shows::seldom},
    {.name = "no fence between decoded codes and wgmmas",
     .kernel = decoded,
     .edits = {{{"if constexpr (row == 0) ptx::wgmma_fence();\n  ptx::wgmma<row, MultipliedMajors",
                 "ptx::wgmma<row, MultipliedMajors"}}}},
    {.name = "a stage is given back before its last products of codes",
     .kernel = decoded,
     .edits = {{{"if (k_block > 0) ring_.release(previous, lane());\n      });",
                 "ring_.release(stage, lane());\n      });"},
                {"ring_.release(last_stage, lane());", ""}}},
     .on_gpu = Shows::seldom},
    {.name = "lanes keep the order in which they read two rows",
     .kernel = decoded,
     .edits = {{{"return has_row_pairs && lane >= 16;", "return has_row_pairs && lane >= 32;"}}}},
    {.name = "every step decodes the first codes",
     .kernel = decoded,
     .edits = {{{"(first_ ^ abi::code_step_flip(bits, step))", "first_"}}}},
    {.name = "both halves of a step have the same codes",
     .kernel = decoded,
     .edits = {{{"const unsigned offset = rows + half * bits;",
                 "const unsigned offset = rows + half * 0;"}}}},
    {.name = "a lane has one row twice",
     .kernel = decoded,
     .edits = {{{"has_row_pairs ? first ^ line_bytes", "has_row_pairs ? first ^ 0"}}}},
    {.name = "codes are read from the first stage",
     .kernel = decoded,
     .edits = {{{"a.read(words, a_stage, first);",
                 "a.read(words, a_stage - stage * sizeof "
                 "shared_.a[0], first);"}}}},

    {.name = "nothing", .kernel = promoted},
    {.name = "products are added while they are computed",
     .kernel = promoted,
     .edits = {{{"ptx::wgmma_wait_group<0>();\n      if (!is_last)", "if (!is_last)"}}}},
    {.name = "a stage is given back while it is multiplied",
     .kernel = promoted,
     .edits =
         {{{"ptx::wgmma_wait_group<0>();\n      if (!is_last) ring_.release(stage, lane());",
            "if (!is_last) ring_.release(stage, lane());\n      ptx::wgmma_wait_group<0>();"}}},
     .on_gpu = Shows::seldom},  // wgmma has read it before a copy that is asked for then comes
    {.name = "products of the block before are added once more",
     .kernel = promoted,
     .edits =
         {{{"multiply_stage<design>(a_of(stage, share.row), b_of(stage, share.column), false);",
            "multiply_stage<design>(a_of(stage, share.row), b_of(stage, share.column), true);"}}}},
    {.name = "the first products are added to what was in registers",
     .kernel = promoted,
     .edits = {{{"if (k_block == 0)\n        sums.take();\n      else\n        sums.add();",
                 "sums.add();"}}}},
    {.name = "the last products take the place of those before",
     .kernel = promoted,
     .edits = {{{"if (k_block == 0)\n        sums.take();",
                 "if (is_last)\n        sums.take();"}}}},

    {.name = "nothing", .kernel = bf16_parts},
    {.name = "no proxy fence after splitting",
     .kernel = bf16_parts,
     .edits = {{{"ptx::fence_proxy_async();\n    ptx::bar_sync<warp_count * 32>",
                 "ptx::bar_sync<warp_count * 32>"}}},
     .on_gpu = Shows::seldom},
    {.name = "no barrier after splitting",
     .kernel = bf16_parts,
     .edits = {{{"ptx::bar_sync<warp_count * 32>(first_barrier + (takes_turns ? consumer : 0));",
                 "static_cast<void>(first_barrier);"}}}},
    {.name = "a unit is written while it is read",
     .kernel = bf16_parts,
     .edits =
         {{{"__syncwarp();\n#pragma unroll\n    for (unsigned step = 0; step < abi::split_steps",
            "#pragma unroll\n    for (unsigned step = 0; step < abi::split_steps"}}}},
    {.name = "a part is taken from the number before the last part was",
     .kernel = bf16_parts,
     .edits = {{{"second -= __uint_as_float(pair & 0xffff0000U);", ""}}}},
    {.name = "part 2 is read where part 1 lies",
     .kernel = bf16_parts,
     .edits = {{{"is_bf16 && part == 1 ? abi::bf16_unit_bytes : 0;", "0;"}}}},
    {.name = "part 3 lies where that of the next unit does",
     .kernel = bf16_parts,
     .edits = {{{"tile + tile_bytes + unit * Splitter::bytes_behind",
                 "tile + tile_bytes + (unit ^ 1U) * Splitter::bytes_behind"}}}},
    {.name = "the product of parts 1 is dropped",
     .kernel = bf16_parts,
     .edits = {{{"if constexpr (product + 1 < abi::product_count(math))",
                 "if constexpr (product + 2 < abi::product_count(math))"}}}},
    {.name = "products of parts 1 and 2 are dropped",
     .kernel = bf16_parts,
     .edits = {{{"constexpr abi::PartProduct parts = abi::part_product(math, product);",
                 "constexpr abi::PartProduct parts =\n"
                 "      abi::part_product(math, product == 6 || product == 7 ? 0 : product);"}}}},
    {.name = "the last units of A are not split",
     .kernel = bf16_parts,
     .edits = {{{"unit < tile_bytes / Splitter::bytes;",
                 "unit < tile_bytes / Splitter::bytes - 1;"}}}},
    {.name = "a stage is given back while its parts are multiplied",
     .kernel = bf16_parts,
     .edits =
         {{{"ptx::wgmma_wait_group<0>();\n      if (!is_last) ring_.release(stage, lane());",
            "if (!is_last) ring_.release(stage, lane());\n      ptx::wgmma_wait_group<0>();"}}},
     .on_gpu = Shows::seldom},  // wgmma has read it before a copy that is asked for then comes

    {.name = "nothing", .kernel = tf32_parts},
    {.name = "diagonals are written while they are read",
     .kernel = tf32_parts,
     .edits = {{{"__syncwarp();\n#pragma unroll\n      for (unsigned diagonal",
                 "#pragma unroll\n      for (unsigned diagonal"}}}},
    {.name = "part 2 is what is left of another number",
     .kernel = tf32_parts,
     .edits = {{{"ptx::st_shared<4>(behind + offset, {{parts.second}});",
                 "ptx::st_shared<4>(behind + (offset ^ 16U), {{parts.second}});"}}}},
    {.name = "part 2 is the number",
     .kernel = tf32_parts,
     .edits = {{{"return {first, ptx::cvt_rna_tf32_f32(value - __uint_as_float(first))};",
                 "return {first, first};"}}}},

    {.name = "nothing", .kernel = repacked},
    {.name = "the last element of a line is not copied",
     .kernel = repacked,
     .edits = {{{"min(left / bytes, unit_elements)", "min(left / bytes, unit_elements) - 1"}}}},
    {.name = "the last line is not copied",
     .kernel = repacked,
     .edits = {{{"far_begin + far < operand_.far &&", "far_begin + far + 1 < operand_.far &&"}}}},
    {.name = "a line too many is read",
     .kernel = repacked,
     .edits = {{{"far_begin + far < operand_.far &&", "far_begin + far <= operand_.far &&"}}}},
    {.name = "bytes of a unit are shifted by a word too few",
     .kernel = repacked,
     .edits = {{{"(shift & 8) != 0 ? words[word + 2]", "(shift & 8) != 0 ? words[word + 1]"}}}},
    {.name = "a transposed tile is read before all have written it",
     .kernel = repacked,
     .edits = {{{"store_transposed(unsigned shared) const {\n    __syncthreads();",
                 "store_transposed(unsigned shared) const {"}}}},
    {.name = "words of a transposed tile are those of other rows",
     .kernel = repacked,
     .edits =
         {{{"const unsigned row = chunk * unit_elements + static_cast<unsigned>(element);",
            "const unsigned row = chunk * unit_elements + static_cast<unsigned>(element ^ 1);"}}}},
    {.name = "the second operand's copy is of the first",
     .kernel = repacked,
     .edits = {{{"params.operand[is_second ? 1 : 0]", "params.operand[0]"}}}},
    {.name = "threads store a row too many",
     .kernel = repacked,
     .edits = {{{"if (corner.row + row >= ends.row) continue;",
                 "if (corner.row + row > ends.row) continue;"}}}},
    {.name = "threads store a column too many",
     .kernel = repacked,
     .edits = {{{"left >= static_cast<int>(elements)", "left + 1 >= static_cast<int>(elements)"}}}},
    {.name = "threads store a staging tile before all lanes have filled it",
     .kernel = repacked,
     .edits = {{{"void store_by_threads() const {\n    __syncwarp();",
                 "void store_by_threads() const {"}}}},
    {.name = "batches are copied on top of each other",
     .kernel = repacked,
     .edits = {{{"batch * abi::lines_of(operand) * operand.pitch", "0 * batch"}}}},
    // Not caught by the emulator, which runs one launch after the other.
    {.name = "a copy takes the place of one that is in use",
     .kernel = repacked,
     .edits = {{{"ptx::griddepcontrol_wait();\n  const bool is_second", "const bool is_second"}}},
     .on_gpu = Shows::seldom,
     .on_emulator = Shows::seldom},
    {.name = "the product does not wait for the copies",
     .kernel = repacked,
     .edits = {{{"sync_cluster();\n    ptx::griddepcontrol_wait();", "sync_cluster();"}}},
     .on_gpu = Shows::seldom,
     .on_emulator = Shows::seldom},

    {.name = "nothing", .kernel = parts},
    {.name = "nothing", .kernel = serial_parts},
    {.name = "nothing", .kernel = stream},
    {.name = "a part counts before it is written",
     .kernel = parts,
     .edits = {{{"team.sync();\n  if (team.thread() == 0) *team.flag() =",
                 "if (team.thread() == 0) *team.flag() ="}}}},
    {.name = "a part counts without a fence",
     .kernel = parts,
     .edits = {{{"atom.inc.acq_rel.gpu.global.u32", "atom.inc.relaxed.gpu.global.u32"}}},
     .on_gpu = Shows::seldom},
    {.name = "the count is read before it is there",
     .kernel = parts,
     .edits = {{{"team.sync();\n  if (*team.flag() + 1 !=", "if (*team.flag() + 1 !="}}}},
    {.name = "the last but one to arrive adds up",
     .kernel = parts,
     .edits = {{{"if (*team.flag() + 1 != share.slices) return false;",
                 "if (*team.flag() + 2 != share.slices) return false;"}}}},
    {.name = "a counter is not reset",
     .kernel = parts,
     .edits = {{{"ptx::atom_inc_acq_rel_gpu(counter, share.slices - 1)",
                 "ptx::atom_inc_acq_rel_gpu(counter, 0x7fffffff)"}}}},
    {.name = "consumers count together",
     .kernel = parts,
     .edits = {{{"counters_ + tile * parts + part_", "counters_ + tile * parts"}}}},
    {.name = "consumers leave accumulators in one place",
     .kernel = parts,
     .edits = {{{"static_cast<abi::UInt64>(slot * parts + part_)",
                 "static_cast<abi::UInt64>(slot * parts)"}}}},
    {.name = "parts of other tiles are added",
     .kernel = parts,
     .edits = {{{"return share.slot - share.slice + slice;", "return share.slot + slice;"}}}},
    {.name = "its own accumulators are added once more",
     .kernel = parts,
     .edits = {{{"for_each_vector(having_rows, Clear{});\n", ""}}}},
    {.name = "every slice brings the first k",
     .kernel = parts,
     .edits = {{{"static_cast<int>(first_k_block_of(tiles) * tile_k)", "0"}}}},
    {.name = "parts lack a warp's last rows",
     .kernel = parts,
     .edits = {{{"place_.blocks_with_rows(rows)", "place_.blocks_with_rows(rows / 2)"}}}},
    {.name = "no wait for the slice before",
     .kernel = serial_parts,
     .edits = {{{"while (ptx::ld_acquire_gpu(counter) != share.slice)", "while (false)"}}}},
    {.name = "the turn is seen without an acquire",
     .kernel = serial_parts,
     .edits = {{{"ld.acquire.gpu.global.u32", "ld.relaxed.gpu.global.u32"}}},
     .on_gpu = Shows::seldom},
    {.name = "others read before the turn is seen",
     .kernel = serial_parts,
     .edits = {{{"team.sync();\n    team.add(share.slot);", "team.add(share.slot);"}}}},
    {.name = "the turn is passed before all have left their accumulators",
     .kernel = serial_parts,
     .edits = {{{"team.sync();\n  if (team.thread() == 0) ptx::st_release_gpu(counter,",
                 "if (team.thread() == 0) ptx::st_release_gpu(counter,"}}}},
    {.name = "the turn is passed without a release",
     .kernel = serial_parts,
     .edits = {{{"ptx::st_release_gpu(counter,", "ptx::st_relaxed_gpu(counter,"}}},
     .on_gpu = Shows::seldom},
    {.name = "the last slice gives its turn to the second one",
     .kernel = serial_parts,
     .edits = {{{"is_last ? 0U : share.slice + 1", "is_last ? 1U : share.slice + 1"}}}},
    {.name = "shares begin one block of k late",
     .kernel = stream,
     .edits = {{{"return unit * schedule_.per_unit + min(unit, schedule_.longer);",
                 "return unit * schedule_.per_unit + min(unit, schedule_.longer) + 1;"}}}},
    {.name = "both parts of a unit lie in one place",
     .kernel = stream,
     .edits = {{{"== tile ? 0U : 1U);", "== tile ? 0U : 0U);"}}}},
    {.name = "a tile has a part less",
     .kernel = stream,
     .edits = {{{"- first_unit + 1,", "- first_unit,"}}}},
    {.name = "whole tiles are taken by none",
     .kernel = stream,
     .edits = {{{"wave_ == schedule_.whole;", "wave_ <= schedule_.whole;"}}}},
    {.name = "a consumer does not pass over the other's share",
     .kernel = stream,
     .edits = {{{"cursor.advance_by(places_.k_blocks_of(tiles));", "cursor.advance_by(1);"}}}},
    {.name = "no turns",
     .kernel = stream,
     .edits = {{{"if (takes_turns && !tiles.is_first()) wait_for_turn(consumer);", ""},
                {"if (takes_turns && !tiles.is_last()) pass_turn<turns>(consumer);", ""}}}},

    {.name = "nothing", .kernel = cluster_parts},
    {.name = "sums of the other block are not waited for",
     .kernel = cluster_parts,
     .edits = {{{"wait_for_phase(full_, phase_);", ""}}}},
    {.name = "sums come before others are added",
     .kernel = cluster_parts,
     .edits = {{{"wait_for_phase(free_, phase_ ^ 1U);", ""}}},
     .on_gpu = Shows::seldom},
    {.name = "every block multiplies the same share of k",
     .kernel = cluster_parts,
     .edits = {{{"split_rank() * params_.k_blocks * tile_k", "0U"}}}},
    {.name = "every slice brings the first k",
     .kernel = cluster_parts,
     .edits = {{{"static_cast<int>(first_k_block_of(tiles) * tile_k)", "0"}}}},
    {.name = "a part counts before it is written",
     .kernel = cluster_parts,
     .edits = {{{"team.sync();\n  if (team.thread() == 0) *team.flag() =",
                 "if (team.thread() == 0) *team.flag() ="}}}},
    {.name = "a part counts without a fence",
     .kernel = cluster_parts,
     .edits = {{{"atom.inc.acq_rel.gpu.global.u32", "atom.inc.relaxed.gpu.global.u32"}}},
     .on_gpu = Shows::seldom},
    {.name = "the count is read before it is there",
     .kernel = cluster_parts,
     .edits = {{{"team.sync();\n  if (*team.flag() + 1 !=", "if (*team.flag() + 1 !="}}}},
    {.name = "a counter is not reset",
     .kernel = cluster_parts,
     .edits = {{{"ptx::atom_inc_acq_rel_gpu(counter, share.slices - 1)",
                 "ptx::atom_inc_acq_rel_gpu(counter, 0x7fffffff)"}}}},
    {.name = "blocks of a cluster count together",
     .kernel = cluster_parts,
     .edits = {{{"counters_ + tile * parts + part_",
                 "counters_ + tile * parts + part_ % consumers"}}}},
    {.name = "blocks of a cluster leave accumulators in one place",
     .kernel = cluster_parts,
     .edits = {{{"static_cast<abi::UInt64>(slot * parts + part_)",
                 "static_cast<abi::UInt64>(slot * parts + part_ % consumers)"}}}},
    {.name = "its own accumulators are added once more",
     .kernel = cluster_parts,
     .edits = {{{"values[index] = 0;", "static_cast<void>(values[index]);"}}}},
    {.name = "parts after the last four at once are left out",
     .kernel = cluster_parts,
     .edits = {{{"if constexpr (at_once > 1) for_each_part<at_once / 2>(first, parts, add);",
                 ""}}}},
    {.name = "a part behind the last one is added",
     .kernel = cluster_parts,
     .edits = {{{"first + at_once <= parts;", "first + at_once <= parts + 1;"}}}},
    {.name = "a vector is stored in the next one's place",
     .kernel = cluster_parts,
     .edits = {{{"ptx::st_global(part + vector * row_of_vectors,",
                 "ptx::st_global(part + (vector ^ 1) * row_of_vectors,"}}}},

    {.name = "nothing", .kernel = promoted_parts},
    {.name = "promoted accumulators do not come back to wgmma's registers",
     .kernel = promoted_parts,
     .edits = {{{"Registers::write(*this);", ""}}}},
    {.name = "a row of promoted accumulators comes back to another's place",
     .kernel = promoted_parts,
     .edits = {{{"ptx::write_sums<row, first>(&sums.block[row][first]);",
                 "ptx::write_sums<row, first>(&sums.block[row][first ^ 4]);"}}}},
    {.name = "its own accumulators are added once more",
     .kernel = promoted_parts,
     .edits = {{{"for_each_vector(having_rows, Clear{});\n", ""}}}},
    {.name = "nothing", .kernel = transposed_parts},
    {.name = "integers are added as floats",
     .kernel = transposed_parts,
     .edits = {{{"add.s32", "add.rn.f32"}}}},
    {.name = "no barrier after transposition",
     .kernel = transposed_parts,
     .edits = {{{"ptx::bar_sync<warps * 32>(first_barrier + (takes_turns ? consumer_ : 0));",
                 "static_cast<void>(first_barrier);"}}}},
    {.name = "no wait for the slice before",
     .kernel = transposed_parts,
     .edits = {{{"while (ptx::ld_acquire_gpu(counter) != share.slice)", "while (false)"}}}},
    {.name = "nothing", .kernel = part_reduction},
    {.name = "a tile's parts count before all warps have written them",
     .kernel = part_reduction,
     .edits = {{{"write_parts(region);\n    ptx::bar_sync<abi::warpgroup_threads>(1 + consumer_);",
                 "write_parts(region);"}}}},
    {.name = "values are kept from tile to tile",
     .kernel = part_reduction,
     .edits = {{{"void begin_tile() { clear<false>(); }", "void begin_tile() {}"}}}},
    {.name = "warps write their parts in one place",
     .kernel = part_reduction,
     .edits = {{{"part_of<output>(0, 0, warp()) = all;", "part_of<output>(0, 0, 0) = all;"}}}},

    // Not caught by the emulator, which runs one launch after the other.
    {.name = "no wait for the launch ahead",
     .kernel = chained,
     .edits = {{{"ptx::griddepcontrol_wait();", ""}}},
     // On a GPU the previous launch has mostly stored when the next one has initialised barriers.
     .on_gpu = Shows::seldom,
     .on_emulator = Shows::seldom},
};

// --- headers ------------------------------------------------------------------------------------

std::string_view header_text(std::string_view name) {
  for (const jit::EmbeddedHeader& header : jit::embedded_headers()) {
    if (header.name == name) return {header.text, header.size};
  }
  abort_on_bug("a device header that is not embedded");
}

// A line without its comment, so that no fault depends on the text of comments. No string in the
// device code contains "//".
std::string_view code_of(std::string_view line) {
  const std::string_view code = line.substr(0, line.find("//"));
  return code.substr(0, code.find_last_not_of(" \n") + 1);
}

// Replaces includes by the headers, each once.
void append_with_headers(std::string_view source, std::set<std::string_view>& seen,
                         std::string& text) {
  constexpr std::string_view include = "#include <device/";
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size() - 1) + 1;
    const std::string_view line = source.substr(0, end);
    source.remove_prefix(end);
    if (line.starts_with("#pragma once")) continue;
    if (!line.starts_with(include)) {
      const std::string_view code = code_of(line);
      if (!code.empty()) text.append(code).append("\n");
      continue;
    }
    const std::size_t begin = line.find('<') + 1;
    const std::string_view name = line.substr(begin, line.find('>') - begin);
    if (seen.insert(name).second) append_with_headers(header_text(name), seen, text);
  }
}

// --- edits --------------------------------------------------------------------------------------

// Returns the number of replaced places.
int replace_all(std::string& text, std::string_view from, std::string_view to) {
  int places = 0;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
    ++places;
  }
  return places;
}

// Applies an edit. Returns the reason if it does not fit the source, else "".
std::string apply(const Edit& edit, std::string& text) {
  if (edit.sound.empty()) return {};
  const int places = replace_all(text, edit.sound, edit.faulty);
  if (places == 1 || (places > 1 && edit.is_everywhere)) return {};
  return fmt::format("expected its place once in the source, found it {} times: {}", places,
                     edit.sound);
}

struct Planted {
  std::string text;
  std::string misfit;
};

Planted try_to_plant(std::string_view source, const DeviceFault& fault) {
  std::set<std::string_view> seen;
  Planted planted;
  append_with_headers(source, seen, planted.text);
  for (const Edit& edit : fault.edits) planted.misfit += apply(edit, planted.text);
  return planted;
}

// --- delays -------------------------------------------------------------------------------------

// A quarter of the calls sleeps for up to 4 us, and one in 64 for up to 64 us, the time of a small
// tile. The result depends on the warp and, through `turn`, on the iteration of a loop.
constexpr std::string_view delay_function = R"(
__device__ __forceinline__ void plant_delay(unsigned place, unsigned turn) {{
  unsigned bits = {}U ^ place * 0x9e3779b9U ^ turn * 0x85ebca6bU;
  bits ^= (blockIdx.x * 32 + threadIdx.x / 32) * 0xc2b2ae35U;
  bits = (bits ^ bits >> 15) * 0x2c1b3c6dU;
  bits = (bits ^ bits >> 12) * 0x297a2d39U;
  bits ^= bits >> 15;
  const unsigned longest = bits % 64 == 0 ? 0xffffU : bits % 4 == 0 ? 0xfffU : 0U;
  if (longest != 0) __nanosleep(bits >> 8 & longest);
}}
)";

// A place where sm90 kernels wait: its source text, and the expression for `turn`. A place that a
// fault has removed gets no delay.
struct DelayPlace {
  std::string_view before;
  std::string_view turn;
};

constexpr DelayPlace delay_places[] = {
    {"ring_.initialize(", "0"},
    {"const unsigned barrier = ring_.acquire(", "k_block"},
    {"load_.load_stage(cursor.stage,", "k_block"},
    {"multiply_stage<design>(a,", "cursor.stage"},
    {"if (is_later) ring_.release(", "k_block"},
    {"ring_.release(last_stage,", "last_stage.full"},
    {"wait_for_phase(free_,", "phase_"},
    {"wait_for_phase(full_,", "phase_"},
    {"fill(sums, staging, block,", "corner.column + corner.row"},
    {"ptx::tma_store(*map_,", "filled_.column + filled_.row"},
    {"if (takes_turns && !tiles.is_first()) wait_for_turn(", "consumer"},
    {"if (takes_turns && !tiles.is_last()) pass_turn<", "consumer"},
    {"staged_.begin_share(place,", "place.column + place.row"},
    {"if (holds_output(place)) staged_.bring_next_addend(", "place.column + place.row"},
    {"return staged_.next_addend();", "thread_"},
    {"const float all = Reducer::across_lanes(wait_for_parts(", "groups_"},
    {"ptx::st_relaxed_gpu_b64(words_ + group, word_of(part)", "group"},
    {"ptx::st_relaxed_gpu(result_, 0);", "0"},
    {"if (ptx::atom_inc_acq_rel_gpu(seen_,", "0"},
    {"scaled.add(sums, here, part);", "consumer + part"},
    {"store<rows>(target, of_rows, shared);", "place.row + k"},
};

}  // namespace

std::span<const DeviceFault> device_faults() {
  static const std::vector<DeviceFault> all = [] {
    std::vector<DeviceFault> faults(std::begin(fault_table), std::end(fault_table));
    faults.insert(faults.end(), skinny_faults().begin(), skinny_faults().end());
    faults.insert(faults.end(), pointer_faults().begin(), pointer_faults().end());
    faults.insert(faults.end(), far_faults().begin(), far_faults().end());
    faults.insert(faults.end(), group_faults().begin(), group_faults().end());
    faults.insert(faults.end(), conv_faults().begin(), conv_faults().end());
    faults.insert(faults.end(), mma_group_faults().begin(), mma_group_faults().end());
    faults.insert(faults.end(), wgmma_group_faults().begin(), wgmma_group_faults().end());
    faults.insert(faults.end(), scale_faults().begin(), scale_faults().end());
    faults.insert(faults.end(), mma_conv_faults().begin(), mma_conv_faults().end());
    faults.insert(faults.end(), wgmma_conv_faults().begin(), wgmma_conv_faults().end());
    faults.insert(faults.end(), depthwise_faults().begin(), depthwise_faults().end());
    return faults;
  }();
  return all;
}

std::string_view name(SoundKernel kernel) noexcept {
  constexpr std::array<std::string_view, 70> names{"simt",
                                                   "simt, groups",
                                                   "simt, indexed groups",
                                                   "simt, reductions of indexed groups",
                                                   "simt, lists",
                                                   "simt, fprop",
                                                   "simt, dgrad",
                                                   "simt, wgrad",
                                                   "sm90 coop",
                                                   "sm90 pingpong",
                                                   "sm90 2x1 coop",
                                                   "sm90 coop, chained",
                                                   "sm90 k2 coop",
                                                   "sm90 coop, repacked",
                                                   "sm90 coop, pointers",
                                                   "sm90 coop, groups",
                                                   "sm90 coop, zeros outside of groups",
                                                   "sm90 coop, scattered groups",
                                                   "sm90 coop, weighted groups",
                                                   "sm90 coop, gathered groups",
                                                   "sm90 coop, gathered groups, zeros",
                                                   "sm90 coop, reductions of groups",
                                                   "sm90 coop, lists",
                                                   "sm90 1x2 coop, fprop",
                                                   "sm90 k2 coop, dgrad",
                                                   "sm90 2x1 coop, wgrad",
                                                   "sm90 coop, strided dgrad",
                                                   "sm90 coop, padded wgrad",
                                                   "sm90 coop, far elements",
                                                   "sm90 coop, transposed",
                                                   "sm90 coop, by registers",
                                                   "sm90 coop, decoded",
                                                   "sm90 coop, decoded groups",
                                                   "sm90 coop, promoted",
                                                   "sm90 coop, scaled",
                                                   "sm90 coop, scaled groups",
                                                   "sm90 coop, bf16x9",
                                                   "sm90 coop, tf32x3",
                                                   "sm90 rotation, program",
                                                   "sm90 rotation-add, program",
                                                   "sm90 coop, reductions",
                                                   "sm90 parallel coop",
                                                   "sm90 serial coop",
                                                   "sm90 stream pingpong",
                                                   "sm90 k2 parallel coop",
                                                   "sm90 parallel coop, promoted",
                                                   "sm90 serial coop, transposed",
                                                   "sm90 parallel coop, reductions",
                                                   "sm80",
                                                   "sm80 parallel",
                                                   "sm80 serial",
                                                   "sm80 f16x3 by k8",
                                                   "sm80, groups",
                                                   "sm80, groups of few blocks",
                                                   "sm80, groups in a table",
                                                   "sm80, indexed groups",
                                                   "sm80, indexed groups, zeros",
                                                   "sm80, lists",
                                                   "sm80, fprop",
                                                   "sm80, dgrad",
                                                   "sm80, wgrad",
                                                   "sm80, fprop by elements",
                                                   "sm80, wgrad of bytes",
                                                   "sm80, strided dgrad",
                                                   "skinny",
                                                   "skinny parallel",
                                                   "depthwise",
                                                   "depthwise, strided dgrad",
                                                   "depthwise, reductions",
                                                   "depthwise, wgrad"};
  static_assert(names.size() == static_cast<std::size_t>(SoundKernel::depthwise_wgrad) + 1);
  return names[static_cast<std::size_t>(kernel)];
}

bool is_wanted(const DeviceFault& fault) {
  const char* const wanted = std::getenv("GEMMERY_TEST_FAULTS");
  if (wanted == nullptr) return true;
  const std::string label = fmt::format("{}, {}", name(fault.kernel), fault.name);
  for (std::string_view texts = wanted;;) {
    const std::size_t bar = texts.find('|');
    if (label.find(texts.substr(0, bar)) != std::string::npos) return true;
    if (bar == std::string_view::npos) return false;
    texts.remove_prefix(bar + 1);
  }
}

SoundProgram program_of(SoundKernel kernel) noexcept {
  if (kernel == rotation) return {"D = gelu(accum + bias)", "bias=f32[n]"};
  if (kernel == addition) return {"D = gelu(accum + bias)", "bias=bf16[n]"};
  if (kernel == part_reduction)
    return {"D = accum + bias; total = sum(D); columns = max(accum); peak = max(abs(D))",
            "bias=f32[n] total=f32[1] columns=f32[n] peak=f32[1]"};
  if (kernel == SoundKernel::wgmma_weights)
    return {"D = (accum + bias) * weight + more; scale = block_amax(accum, 1, 8)",
            "bias=f32[l,n] weight=f32[m] more=f32[m,n] scale=f32:swizzled"};
  if (kernel == SoundKernel::indexed_sums)
    return {"D = accum * 2; sums = sum(accum); rows = max(D)", "sums=f32[l,n] rows=f32[m]"};
  if (kernel == SoundKernel::wgmma_group_sums)
    return {"D = accum * 2; sums = sum(accum); peak = amax(D); rows = max(D)",
            "sums=f32[l,n] peak=f32[l,1] rows=f32[m]"};
  if (kernel == SoundKernel::depthwise_sums)
    return {"D = accum * 2; sums = sum(D); peak = amax(D)", "sums=f32[l,n] peak=f32[l,n]"};
  if (kernel == reduction)
    return {"D = accum + bias; total = sum(D); peak = max(abs(D))",
            "bias=f32[n] total=f32[1] peak=f32[1]"};
  return {};
}

std::string find_misfit(std::string_view source, const DeviceFault& fault) {
  return try_to_plant(source, fault).misfit;
}

std::string plant(std::string_view source, const DeviceFault& fault) {
  Planted planted = try_to_plant(source, fault);
  if (!planted.misfit.empty())
    abort_on_bug(fmt::format("\"{}\": {}", fault.name, planted.misfit).c_str());
  return std::move(planted.text);
}

std::string plant_delays(std::string source, std::uint32_t seed) {
  unsigned place = 0;
  for (const DelayPlace& row : delay_places) {
    replace_all(source, row.before,
                fmt::format("plant_delay({}, {});\n{}", ++place, row.turn, row.before));
  }
  return fmt::format(fmt::runtime(delay_function), seed) + source;
}

}  // namespace gemmery::conformance
