// SPDX-License-Identifier: Apache-2.0
// Asks the heuristics once for each problem; leaves out algorithms with known faults.
#include "providers/cublaslt/answers.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <array>

#include "providers/cublaslt/known_faults.hpp"

namespace gemmery::cublaslt {
namespace {

constexpr int most_choices = 8;

// What cuBLAS's manual recommends as the workspace of each architecture.
std::size_t most_workspace_bytes(Target device) {
  return std::size_t{device.architecture >= 90 ? 32u : 4u} << 20;
}

}  // namespace

// --- Answer -------------------------------------------------------------------------------------

Answer::Answer(const Library& library, Handle handle, Target device, const Product& product)
    : library_(library),
      handle_(handle),
      device_(device),
      product_(product),
      layouts_(library, product),
      operation_(make_operation(library, product, sample_addresses(product))) {
  ask_heuristics();
}

void Answer::ask_heuristics() {
  const auto preference = make_preference(library_, product_, most_workspace_bytes(device_));
  std::array<HeuristicResult, most_choices> results{};
  int count = 0;
  const Result result = library_.api.cublasLtMatmulAlgoGetHeuristic(
      handle_, operation_.get(), layouts_.first.get(), layouts_.second.get(), layouts_.c.get(),
      layouts_.out.get(), preference.get(), most_choices, results.data(), &count);
  if (result != Result::success) {
    refusal_ = "heuristics: expected an algorithm for this problem, got " +
               cublaslt::describe(library_, result);
    return;
  }
  for (int i = 0; i < std::min(count, most_choices); ++i)
    take(results[static_cast<std::size_t>(i)]);
  if (choices_.empty() && refusal_.empty())
    refusal_ = "heuristics: expected an algorithm for this problem, got none";
}

void Answer::take(const HeuristicResult& result) {
  if (result.state != Result::success) return;
  const auto algorithm = read_algorithm(library_, result.algorithm, device_);
  if (!algorithm) return;
  if (const Status status = check_faults(*algorithm); !status) {
    if (refusal_.empty()) refusal_ = status.error();
    return;
  }
  const bool is_known =
      std::ranges::find(choices_, *algorithm, &Choice::algorithm) != choices_.end();
  if (!is_known)
    choices_.push_back({*algorithm, result.algorithm, result.workspace_bytes, result.waves});
}

Status Answer::check_faults(const Algorithm& algorithm) const {
  return check_known_faults({.version = library_.version,
                             .device = device_,
                             .algorithm = algorithm.id,
                             .largest_span = product_.largest_span()});
}

// From its identifiers. Throws Error if the library refuses them.
Choice Answer::configured(const Algorithm& algorithm) const {
  HeuristicResult result;
  check(library_,
        library_.api.cublasLtMatmulAlgoInit(
            handle_, product_.compute, product_.scale, product_.first.type, product_.second.type,
            product_.c.type, product_.out.type, algorithm.id, &result.algorithm),
        "cublasLtMatmulAlgoInit");
  configure(library_, algorithm, result.algorithm);
  const AlgorithmData data = result.algorithm;
  check(library_,
        library_.api.cublasLtMatmulAlgoCheck(handle_, operation_.get(), layouts_.first.get(),
                                             layouts_.second.get(), layouts_.c.get(),
                                             layouts_.out.get(), &data, &result),
        "cublasLtMatmulAlgoCheck");
  return {algorithm, data, result.workspace_bytes, result.waves};
}

const Choice* Answer::find(const Algorithm& algorithm, std::string& reason) const {
  const auto chosen = std::ranges::find(choices_, algorithm, &Choice::algorithm);
  if (chosen != choices_.end()) return &*chosen;
  const std::scoped_lock lock(looking_up_);
  const auto known = std::ranges::find_if(
      looked_up_, [&](const auto& choice) { return choice->algorithm == algorithm; });
  if (known != looked_up_.end()) return known->get();
  if (const Status status = check_faults(algorithm); !status) {
    reason = status.error();
    return nullptr;
  }
  try {
    looked_up_.push_back(std::make_unique<const Choice>(configured(algorithm)));
    return looked_up_.back().get();
  } catch (const Error& error) {
    reason = std::string("algorithm: ") + error.what();
    return nullptr;
  }
}

// --- DeviceAnswers ------------------------------------------------------------------------------

DeviceAnswers::DeviceAnswers(const Library& library, const driver::GpuDevice& device)
    : library_(library), device_(device) {
  const driver::ScopedContext current(device);
  const driver::ScopedRelaxedCapture relaxed(device.api());
  check(library, library.api.cublasLtCreate(&handle_), "cublasLtCreate");
}

std::shared_ptr<const Answer> DeviceAnswers::answer_for(const GemmProblem& problem,
                                                        const Product& product) {
  {
    const std::shared_lock lock(mutex_);
    if (const auto known = answers_.find(problem); known != answers_.end()) return known->second;
  }
  const driver::ScopedContext current(device_);
  const driver::ScopedRelaxedCapture relaxed(device_.api());
  auto answer = std::make_shared<const Answer>(library_, handle_, device_.info().target, product);
  const std::scoped_lock lock(mutex_);
  if (answers_.size() >= most_problems) answers_.clear();
  return answers_.try_emplace(problem, std::move(answer)).first->second;
}

}  // namespace gemmery::cublaslt
