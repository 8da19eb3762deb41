// SPDX-License-Identifier: Apache-2.0
// A mixture of experts without a permutation of rows. Every token has two experts. The first two
// products read tokens in place, by the list of (token, choice) pairs in the order of experts; the
// last one stores its rows in the order of pairs, each multiplied by its router's weight. Both use
// the same list: a gather divides it by the number of choices, a scatter does not.
#include <algorithm>
#include <numeric>

#include "gallery.hpp"

namespace {

constexpr std::int64_t tokens = 30, choices = 2, pairs = tokens * choices;
constexpr std::int64_t experts = 5, width = 12, hidden = 20;

float small(std::size_t index) { return static_cast<float>(index * 7 % 5) / 2 - 1; }

// The expert of each pair. The last expert has no pairs.
std::size_t expert_of(std::size_t pair) { return pair * pair % (experts - 1); }

// The pairs in the order of their experts, and their number for each expert.
struct Routing {
  std::vector<std::int32_t> order = std::vector<std::int32_t>(pairs);
  std::vector<std::int32_t> counts = std::vector<std::int32_t>(experts);

  Routing() {
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(
        order, {}, [](std::int32_t pair) { return expert_of(static_cast<std::size_t>(pair)); });
    for (std::size_t pair = 0; pair < pairs; ++pair) ++counts[expert_of(pair)];
  }
};

}  // namespace

int main(int count, char** words) {
  using namespace gemmery;
  const OwnedStream stream(gallery::choose_device(count, words));
  gallery::Memory<float> x(DType::float32, {tokens, width}, stream);
  gallery::Memory<float> gate_weights(DType::float32, {experts, width, hidden}, stream);
  gallery::Memory<float> up_weights(DType::float32, {experts, width, hidden}, stream);
  gallery::Memory<float> down_weights(DType::float32, {experts, hidden, width}, stream);
  gallery::Memory<float> gate(DType::float32, {pairs, hidden}, stream);
  gallery::Memory<float> inner(DType::float32, {pairs, hidden}, stream);
  gallery::Memory<float> weight(DType::float32, {pairs, 1}, stream);  // of the router
  gallery::Memory<float> out(DType::float32, {pairs, width}, stream);
  gallery::Memory<std::int32_t> order(DType::int32, {pairs}, stream);
  gallery::Memory<std::int32_t> counts(DType::int32, {experts}, stream);
  const Routing routing;
  x.fill(small);
  gate_weights.fill([](std::size_t index) { return small(index + index / 3); });
  up_weights.fill([](std::size_t index) { return small(index + index / 7); });
  down_weights.fill([](std::size_t index) { return small(index + index / 11); });
  weight.fill([](std::size_t index) { return static_cast<float>(index % 4 + 1) / 4; });
  order.fill([&](std::size_t index) { return routing.order[index]; });
  counts.fill([&](std::size_t index) { return routing.counts[index]; });

  const auto integers = [](const Tensor& view) {
    return GroupIndices(static_cast<const std::int32_t*>(view.data()), view.extent(0),
                        view.device());
  };
  const GroupOffsets read_tokens{.sizes = integers(counts.view()),
                                 .form = GroupSizes::counts,
                                 .gather = integers(order.view()),
                                 .gather_divide = choices};
  const GroupOffsets store_pairs{.sizes = integers(counts.view()),
                                 .form = GroupSizes::counts,
                                 .scatter = integers(order.view())};
  gallery::run(
      GroupedGemmArguments(x.view(), gate_weights.view(), gate.view(), DType::float32, read_tokens,
                           {.epilogue = EpilogueArguments("D = silu(accum)")}),
      stream);
  gallery::run(GroupedGemmArguments(
                   x.view(), up_weights.view(), inner.view(), DType::float32, read_tokens,
                   {.epilogue = EpilogueArguments("D = gate * accum", {{"gate", gate.view()}})}),
               stream);
  gallery::run(
      GroupedGemmArguments(
          inner.view(), down_weights.view(), out.view(), DType::float32, store_pairs,
          {.epilogue = EpilogueArguments("D = weight * accum", {{"weight", weight.view()}})}),
      stream);
  out.read();

  int differences = 0;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const std::size_t expert = expert_of(pair);
    std::vector<double> sums(width);
    for (std::size_t column = 0; column < hidden; ++column) {
      double left = 0, right = 0;
      for (std::size_t k = 0; k < width; ++k) {
        const std::size_t at = (expert * width + k) * hidden + column;
        left += x[pair / choices * width + k] * gate_weights[at];
        right += x[pair / choices * width + k] * up_weights[at];
      }
      const double value = left / (1 + std::exp(-left)) * right;
      for (std::size_t k = 0; k < width; ++k)
        sums[k] += value * down_weights[(expert * hidden + column) * width + k];
    }
    for (std::size_t k = 0; k < width; ++k)
      differences +=
          gallery::differs(out[pair * width + k], weight[pair] * sums[k], 1e-5, 1e-3) ? 1 : 0;
  }
  return gallery::report(differences);
}
