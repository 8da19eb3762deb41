// SPDX-License-Identifier: Apache-2.0
// A described GEMM of problems of different sizes: those of equal size are an array of products.
#include <fmt/format.h>
#include <gemmery/describe.hpp>

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "describe/arguments_state.hpp"
#include "describe/refusal.hpp"

namespace gemmery::describe {
namespace {

// The pointers of some problems, in their order.
GemmPointers choose(const GemmPointers& pointers, const std::vector<std::size_t>& problems) {
  GemmPointers chosen;
  for (const std::size_t problem : problems) {
    chosen.A.push_back(pointers.A[problem]);
    chosen.B.push_back(pointers.B[problem]);
    if (!pointers.C.empty()) chosen.C.push_back(pointers.C[problem]);
    chosen.D.push_back(pointers.D[problem]);
  }
  return chosen;
}

template <class Pointer>
void check_length(std::string_view operand, const std::vector<Pointer>& pointers,
                  std::size_t problems) {
  if (pointers.size() != problems)
    refuse(operand, fmt::format("{} pointers, one for each problem", problems),
           std::to_string(pointers.size()));
}

void check_lengths(const GemmPointers& pointers, std::size_t problems) {
  check_length("A", pointers.A, problems);
  check_length("B", pointers.B, problems);
  if (!pointers.C.empty()) check_length("C", pointers.C, problems);
  check_length("D", pointers.D, problems);
}

// "A" becomes "A[3]", "problem_size.m" becomes "problem_sizes[3].m"; other names do not change.
std::string name_in_list(const std::string& operand, std::size_t problem) {
  constexpr std::string_view of_size = "problem_size";
  if (operand.starts_with(of_size))
    return fmt::format("problem_sizes[{}]{}", problem, operand.substr(of_size.size()));
  return operand.size() == 1 ? fmt::format("{}[{}]", operand, problem) : operand;
}

// Problems by size, in the order in which sizes first occur.
std::vector<std::vector<std::size_t>> join_equal_sizes(const std::vector<GemmCoord>& sizes) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::size_t> place_of_size;
  std::vector<std::vector<std::size_t>> joined;
  for (std::size_t problem = 0; problem < sizes.size(); ++problem) {
    const auto& [m, n, k] = sizes[problem];
    const auto place = place_of_size.try_emplace({m, n, k}, joined.size());
    if (place.second) joined.emplace_back();
    joined[place.first->second].push_back(problem);
  }
  return joined;
}

}  // namespace

struct GemmGroupedArguments::State {
  GemmOperationGrouped operation;
  std::vector<GemmCoord> sizes;
  Device device;
  std::vector<GemmArguments> launches = {};  // one for each size
};

std::string_view name(SchedulerMode mode) noexcept {
  return mode == SchedulerMode::Device ? "Device" : "Host";
}

GemmOperationGrouped::GemmOperationGrouped(GemmDescription description,
                                           SchedulerMode precompute_mode)
    : GemmOperationUniversal(std::move(description)), precompute_mode_(precompute_mode) {
  if (this->description().visitor)
    refuse_unsupported("epilogue_functor", "a functor for problems of different sizes", "a visitor",
                       "its operands have the size of one problem");
}

void GemmOperationGrouped::run(const GemmGroupedArguments& arguments, Stream stream) const {
  const GemmGroupedArguments::State& state = *arguments.state();
  if (!(state.operation == *this))
    refuse("arguments", "arguments of this operation", "those of " + state.operation.name());
  for (const GemmArguments& launch : state.launches) GemmOperationUniversal::run(launch, stream);
}

GemmGroupedArguments::GemmGroupedArguments(const GemmOperationGrouped& operation,
                                           std::vector<GemmCoord> problem_sizes,
                                           const GemmPointers& pointers, Device device,
                                           const OutputOp& output_op) {
  check_lengths(pointers, problem_sizes.size());
  for (std::size_t problem = 0; problem < problem_sizes.size(); ++problem) {
    try {
      check_arguments(operation.description(), problem_sizes[problem], choose(pointers, {problem}),
                      device, {.output_op = output_op});
    } catch (const Error& error) {
      refuse(name_in_list(error.operand(), problem), error.expected(), error.got(), error.hint(),
             error.kind());
    }
  }
  State state{.operation = operation, .sizes = std::move(problem_sizes), .device = device};
  for (const std::vector<std::size_t>& problems : join_equal_sizes(state.sizes))
    state.launches.emplace_back(operation, state.sizes[problems.front()],
                                choose(pointers, problems), device,
                                GemmOptions{.gemm_mode = Mode::Array,
                                            .output_op = output_op,
                                            .batch = static_cast<int>(problems.size())});
  state_ = std::make_shared<const State>(std::move(state));
}

const std::vector<GemmCoord>& GemmGroupedArguments::problem_sizes() const noexcept {
  return state_->sizes;
}
Device GemmGroupedArguments::device() const noexcept { return state_->device; }

std::vector<Kernel> GemmGroupedArguments::kernels() const {
  std::vector<Kernel> kernels;
  for (const GemmArguments& launch : state_->launches) {
    const std::vector<Kernel> own = launch.kernels();
    kernels.insert(kernels.end(), own.begin(), own.end());
  }
  return kernels;
}

}  // namespace gemmery::describe
