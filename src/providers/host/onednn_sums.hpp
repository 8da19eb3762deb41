// SPDX-License-Identifier: Apache-2.0
// The epilogue on accumulators that a library left in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <gemmery/arguments.hpp>

#include "platform/parallel.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/program_writer.hpp"
#include "providers/host/tile_kernels.hpp"

namespace gemmery::host {

// True if out is the accumulators.
inline bool is_plain_epilogue(const GemmArguments& arguments) {
  return arguments.alpha() == 1 && arguments.beta() == 0 && !has_program(arguments);
}

// Elements from matrix to matrix of a batch, and from row to row.
struct SumsLayout {
  std::int64_t batch_stride;
  std::int64_t row_stride;
};

inline constexpr TileGrid written_tile{8, most_tile_columns};

template <class Sum, class WriterOf>
void write_tiles(const GemmArguments& arguments, const Sum* sums, const SumsLayout& layout,
                 const WriterOf& writer_of) {
  const GemmProblem& problem = arguments.problem();
  for (std::int64_t batch = 0; batch < problem.l; ++batch, sums += layout.batch_stride) {
    const auto writer = writer_of(batch);
    platform::parallel_for(problem.m, written_tile.rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t column = 0; column < problem.n; column += written_tile.columns)
        writer(FinishedTile<Sum>{.row = begin,
                                 .column = column,
                                 .rows = static_cast<int>(end - begin),
                                 .columns = static_cast<int>(std::min<std::int64_t>(
                                     written_tile.columns, problem.n - column)),
                                 .sums = sums + begin * layout.row_stride + column,
                                 .row_stride = static_cast<int>(layout.row_stride),
                                 .plane_stride = 0});
    });
  }
}

// Continues with the epilogue from accumulators in memory.
template <class Sum>
void write_from_sums(const GemmArguments& arguments, const Sum* sums, const SumsLayout& layout) {
  if (!has_program(arguments)) {
    return write_tiles(arguments, sums, layout,
                       [&](std::int64_t batch) { return EpilogueWriter(arguments, batch); });
  }
  // int32 accumulators continue in double (epilogue_compute_type).
  using Compute = std::conditional_t<std::is_same_v<Sum, float>, float, double>;
  ProgramRun<Compute> run(arguments, written_tile);
  write_tiles(arguments, sums, layout, [&](std::int64_t batch) {
    return ProgramWriter<Compute>{run, batch};
  });
  run.finish();
}

}  // namespace gemmery::host
