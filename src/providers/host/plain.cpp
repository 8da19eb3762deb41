// SPDX-License-Identifier: Apache-2.0
// Combines operands, blocked product and epilogue, for every matrix of a batch.
#include "providers/host/plain.hpp"

#include <algorithm>
#include <vector>

#include "platform/parallel.hpp"
#include "providers/host/blocked.hpp"
#include "providers/host/convolution.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/panel_sources.hpp"
#include "providers/host/program_writer.hpp"
#include "providers/host/scratch.hpp"

namespace gemmery::host {
namespace {

// The tile kernels and the number of threads of a run.
struct Means {
  const TileKernels& kernels;
  int threads;
};

// Collects the accumulators of parts of a product in the rows of out, and writes out at the end.
template <class T, class Sum, class Multiply, class Writer>
void run_parts(const GemmArguments& arguments, const ProductParts& parts,
               const TileKernel<T>& kernel, int threads, const Multiply& multiply,
               const Writer& writer) {
  static thread_local Scratch scratch;
  const GemmProblem& problem = arguments.problem();
  const std::int64_t count = problem.m * problem.n;
  auto* const sums = scratch.reserve<Sum>(count, "out", "accumulators");
  std::fill_n(sums, count, Sum{0});
  for (const ProductPart& part : parts) {
    const auto collect = [&](const FinishedTile<Sum>& tile) {
      for (int row = 0; row < tile.rows; ++row)
        std::copy_n(tile.sums + row * tile.row_stride, tile.columns,
                    sums + part.rows[tile.row + row] * problem.n + tile.column);
    };
    multiply(
        BlockedProduct<T>{
            .a = part.panels.a, .b = part.panels.b, .kernel = kernel, .threads = threads},
        finish_with<Sum>(collect));
  }
  const TileGrid grid{kernel.rows, kernel.columns};
  platform::parallel_for(
      problem.m, grid.rows,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; row += grid.rows)
          for (std::int64_t column = 0; column < problem.n; column += grid.columns)
            writer(FinishedTile<Sum>{
                .row = row,
                .column = column,
                .rows = static_cast<int>(std::min<std::int64_t>(grid.rows, end - row)),
                .columns =
                    static_cast<int>(std::min<std::int64_t>(grid.columns, problem.n - column)),
                .sums = sums + row * problem.n + column,
                .row_stride = static_cast<int>(problem.n),
                .plane_stride = 0});
      },
      threads);
}

template <class T, class Writer>
void run_whole(const GemmArguments& arguments, const PanelPair& panels, const TileKernel<T>& kernel,
               int threads, const Writer& writer) {
  const BlockedProduct<T> product{
      .a = panels.a, .b = panels.b, .kernel = kernel, .threads = threads};
  if constexpr (std::is_same_v<T, float>) {
    if (arguments.problem().accumulator == DType::int32)
      return multiply_blocked_integers(product, finish_with<std::int32_t>(writer));
  }
  multiply_blocked(product, finish_with<T>(writer));
}

template <class T, class Writer>
void run_matrix(const GemmArguments& arguments, const TileKernel<T>& kernel, int threads,
                std::int64_t batch, const Writer& writer) {
  if (!arguments.problem().convolution)
    return run_whole(arguments, panel_sources(arguments, batch), kernel, threads, writer);
  const ProductParts parts = product_parts(arguments, batch);
  if (parts.size() == 1) {
    const ProductPart part = parts[0];
    if (part.rows.is_identity()) return run_whole(arguments, part.panels, kernel, threads, writer);
  }
  if constexpr (std::is_same_v<T, float>) {
    if (arguments.problem().accumulator == DType::int32)
      return run_parts<T, std::int32_t>(
          arguments, parts, kernel, threads,
          [](const auto& product, auto finish) { multiply_blocked_integers(product, finish); },
          writer);
  }
  run_parts<T, T>(
      arguments, parts, kernel, threads,
      [](const auto& product, auto finish) { multiply_blocked(product, finish); }, writer);
}

// Multiplies with a writer for each batch, made by `writer_of`.
template <class WriterOf>
void run_batch(const GemmArguments& arguments, const Means& means, std::int64_t batch,
               const WriterOf& writer_of) {
  const auto writer = writer_of(batch);
  if (arguments.problem().accumulator == DType::float64)
    return run_matrix<double>(arguments, means.kernels.float64, means.threads, batch, writer);
  run_matrix<float>(arguments, means.kernels.float32, means.threads, batch, writer);
}

template <class WriterOf>
void run_batches(const GemmArguments& arguments, const Means& means, const WriterOf& writer_of) {
  const GemmProblem& problem = arguments.problem();
  const std::int64_t batches = problem.l;
  const double flops_each = 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                            static_cast<double>(problem.k);
  if (batches > 1 && flops_each < least_shared_flops) {
    platform::parallel_for(
        batches, 1 + batches / 1024,
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t batch = begin; batch < end; ++batch)
            run_batch(arguments, means, batch, writer_of);
        },
        means.threads);
    return;
  }
  for (std::int64_t batch = 0; batch < batches; ++batch)
    run_batch(arguments, means, batch, writer_of);
}

// T is the epilogue's compute type.
template <class T>
void run_program(const GemmArguments& arguments, const Means& means, const TileGrid& grid) {
  ProgramRun<T> run(arguments, grid);
  run_batches(arguments, means, [&](std::int64_t batch) { return ProgramWriter<T>{run, batch}; });
  run.finish();
}

template <class T>
TileGrid grid_of(const TileKernel<T>& kernel) {
  return {kernel.rows, kernel.columns};
}

}  // namespace

void run_plain(const GemmArguments& arguments, const TileKernels& kernels, int threads) {
  const Means means{kernels, threads};
  if (!has_program(arguments)) {
    return run_batches(arguments, means,
                       [&](std::int64_t batch) { return EpilogueWriter(arguments, batch); });
  }
  switch (arguments.problem().accumulator) {
    case DType::float64:
      return run_program<double>(arguments, means, grid_of(kernels.float64));
    case DType::int32:
      return run_program<double>(arguments, means, grid_of(kernels.float32));
    default:
      return run_program<float>(arguments, means, grid_of(kernels.float32));
  }
}

}  // namespace gemmery::host
