// SPDX-License-Identifier: Apache-2.0
// Joins operands, blocked product and epilogue, for every matrix of a batch.
#include "providers/host/plain.hpp"

#include "platform/parallel.hpp"
#include "providers/host/blocked.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/panel_sources.hpp"

namespace gemmery::host {
namespace {

// Below this a matrix is too little work to be shared by threads; a batch of such is shared matrix
// by matrix.
constexpr double least_shared_flops = 4e6;

// How a run is to be done.
struct Means {
  const TileKernels& kernels;
  int threads;
};

template <class T>
void run_matrix(const GemmArguments& arguments, const TileKernel<T>& kernel, int threads,
                std::int64_t batch) {
  const PanelPair panels = panel_sources(arguments, batch);
  const EpilogueWriter writer(arguments, batch);
  const BlockedProduct<T> product{
      .a = panels.a, .b = panels.b, .kernel = kernel, .threads = threads};
  if constexpr (std::is_same_v<T, float>) {
    if (arguments.problem().accumulator == DType::int32)
      return multiply_blocked_integers(product, finish_with<std::int32_t>(writer));
  }
  multiply_blocked(product, finish_with<T>(writer));
}

void run_one(const GemmArguments& arguments, const Means& means, std::int64_t batch) {
  if (arguments.problem().accumulator == DType::float64)
    return run_matrix<double>(arguments, means.kernels.float64, means.threads, batch);
  run_matrix<float>(arguments, means.kernels.float32, means.threads, batch);
}

}  // namespace

void run_plain(const GemmArguments& arguments, const TileKernels& kernels, int threads) {
  const Means means{kernels, threads};
  const GemmProblem& problem = arguments.problem();
  const std::int64_t batches = problem.l;
  const double flops_each = 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                            static_cast<double>(problem.k);
  if (batches > 1 && flops_each < least_shared_flops) {
    platform::parallel_for(
        batches, 1 + batches / 1024,
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t batch = begin; batch < end; ++batch) run_one(arguments, means, batch);
        },
        threads);
    return;
  }
  for (std::int64_t batch = 0; batch < batches; ++batch) run_one(arguments, means, batch);
}

}  // namespace gemmery::host
