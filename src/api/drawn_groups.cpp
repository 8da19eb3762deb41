// SPDX-License-Identifier: Apache-2.0
#include "api/drawn_groups.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <tuple>

#include "api/random_numbers.hpp"
#include "core/arithmetic.hpp"
#include "operation/groups.hpp"

namespace gemmery::api {
namespace {

// Random numbers, one after the other.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t bits() { return random_bits(seed_, next_++); }
  std::int64_t up_to(std::int64_t most) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(most + 1));
  }
  double unit() { return unit_of(static_cast<std::uint32_t>(bits())); }
  bool chance(int one_in) { return bits() % static_cast<std::uint64_t>(one_in) == 0; }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

// The distribution of the sizes.
enum class Shape : std::uint8_t { even, uniform, skewed, sparse, one_has_all };
constexpr std::uint64_t shape_count = 5;

double weight_of(Shape shape, std::int64_t group, std::int64_t chosen, Draw& draw) {
  switch (shape) {
    case Shape::even:
      return 1;
    case Shape::uniform:
      return draw.unit();
    case Shape::skewed:
      return std::exp(6 * draw.unit());
    case Shape::sparse:
      return draw.chance(3) ? draw.unit() : 0;
    case Shape::one_has_all:
      return group == chosen ? 1 : 0;
  }
  return 1;
}

// Draws sizes whose sum is at most `extent`; each group begins at a multiple of the alignment.
std::vector<std::int64_t> draw_counts(std::int64_t groups, std::int64_t extent,
                                      std::int64_t alignment, Draw& draw) {
  const auto shape = static_cast<Shape>(draw.bits() % shape_count);
  const std::int64_t chosen = groups > 0 ? draw.up_to(groups - 1) : 0;
  std::vector<double> weights;
  for (std::int64_t group = 0; group < groups; ++group)
    weights.push_back(weight_of(shape, group, chosen, draw));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double used = draw.chance(2) ? 1 : draw.unit();  // the rest belongs to no group
  std::vector<std::int64_t> counts;
  std::int64_t end = 0;
  for (const double weight : weights) {
    const double share = sum > 0 ? weight / sum * used * static_cast<double>(extent) : 0;
    const std::int64_t room = std::max<std::int64_t>(extent - round_up(end, alignment), 0);
    const std::int64_t count = std::min(static_cast<std::int64_t>(std::ceil(share)), room);
    counts.push_back(count);
    if (count > 0) end = round_up(end, alignment) + count;
  }
  return counts;
}

std::vector<std::int64_t> even_counts(const GemmProblem& problem) {
  const Groups& groups = *problem.groups;
  const std::int64_t extent = operation::ragged_extent(problem);
  if (!groups.share_tensors())
    return std::vector<std::int64_t>(
        static_cast<std::size_t>(problem.l),
        groups.expected > 0 ? std::min(groups.expected, extent) : extent);
  std::vector<std::int64_t> counts;
  std::int64_t begin = 0;
  for (std::int64_t group = 0; group < problem.l; ++group) {
    const std::int64_t share =
        extent * (group + 1) / problem.l / groups.alignment * groups.alignment;
    const std::int64_t end = group + 1 == problem.l ? extent : std::max(share, begin);
    counts.push_back(end - begin);
    begin = end;
  }
  return counts;
}

// The end of every group, after a 0 for a prefix.
std::vector<std::int64_t> ends_of(const std::vector<std::int64_t>& counts, std::int64_t alignment) {
  std::vector<std::int64_t> ends;
  std::int64_t end = 0;
  for (const std::int64_t count : counts) {
    if (count > 0) end = round_up(end, alignment) + count;
    ends.push_back(end);
  }
  return ends;
}

// Labels: the groups in a random order, each with its rows, some after a gap.
std::vector<std::int64_t> labels_of(const std::vector<std::int64_t>& counts, std::int64_t extent,
                                    std::int64_t alignment, Draw& draw) {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(extent), -1);
  std::vector<std::int64_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(draw.up_to(static_cast<std::int64_t>(i) - 1))]);
  std::int64_t next = 0;
  for (const std::int64_t group : order) {
    next = round_up(next, alignment);
    if (draw.chance(4)) next += alignment;
    const std::int64_t count = counts[static_cast<std::size_t>(group)];
    const std::int64_t end = std::min(next + count, extent);
    for (; next < end; ++next) labels[static_cast<std::size_t>(next)] = group;
  }
  return labels;
}

std::vector<std::int64_t> in_form(const GemmProblem& problem,
                                  const std::vector<std::int64_t>& counts, Draw& draw) {
  const std::int64_t alignment = problem.groups->alignment;
  switch (problem.groups->sizes) {
    case GroupSizes::ends:
      return ends_of(counts, alignment);
    case GroupSizes::prefix: {
      std::vector<std::int64_t> prefix{0};
      for (const std::int64_t end : ends_of(counts, alignment)) prefix.push_back(end);
      return prefix;
    }
    case GroupSizes::labels:
      return labels_of(counts, operation::ragged_extent(problem), alignment, draw);
    default:
      return counts;
  }
}

std::vector<std::int64_t> draw_masked(const GemmProblem& problem, Draw& draw) {
  std::vector<std::int64_t> counts;
  const std::int64_t extent = operation::ragged_extent(problem);
  for (std::int64_t group = 0; group < problem.l; ++group)
    counts.push_back(draw.chance(4) ? 0 : draw.chance(4) ? extent : draw.up_to(extent));
  return counts;
}

}  // namespace

namespace {

std::vector<std::byte> bytes_of(const std::vector<std::int64_t>& values, int bits) {
  const auto width = static_cast<std::size_t>(bits / 8);
  std::vector<std::byte> bytes(values.size() * width);
  for (std::size_t index = 0; index < values.size(); ++index) {
    const auto narrow = static_cast<std::int32_t>(values[index]);
    std::memcpy(&bytes[index * width],
                bits == 64 ? static_cast<const void*>(&values[index]) : &narrow, width);
  }
  return bytes;
}

// An arbitrary index for an element in no group, which is never read.
std::vector<std::int64_t> draw_garbage(std::int64_t count, int bits, Draw& draw) {
  std::vector<std::int64_t> values;
  for (std::int64_t index = 0; index < count; ++index)
    values.push_back(bits == 64 ? static_cast<std::int64_t>(draw.bits())
                                : static_cast<std::int32_t>(draw.bits()));
  return values;
}

// 0 to extent - 1 in a random order.
std::vector<std::int64_t> draw_order(std::int64_t extent, Draw& draw) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(extent));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t left = extent; left > 1; --left)
    std::swap(order[static_cast<std::size_t>(left - 1)],
              order[static_cast<std::size_t>(draw.up_to(left - 1))]);
  return order;
}

}  // namespace

DrawnGroups::DrawnGroups(const GemmProblem& problem, const std::vector<std::int64_t>& sizes)
    : bits_(problem.groups->index_bits), count_(static_cast<std::int64_t>(sizes.size())) {
  bytes_ = bytes_of(sizes, bits_);
}

GroupIndices DrawnGroups::at(const void* data, Device device) const noexcept {
  if (bits_ == 64) return {static_cast<const std::int64_t*>(data), count_, device};
  return {static_cast<const std::int32_t*>(data), count_, device};
}

void DrawnGroups::draw_indices(const GemmProblem& problem, std::uint64_t seed, bool padding) {
  const auto& [gather, scatter] = std::tie(problem.groups->gather, problem.groups->scatter);
  if (!problem.groups->have_indices()) return;
  Draw draw(seed + 1);
  const std::int64_t elements = operation::ragged_extent(problem);
  std::vector<std::int64_t> read = draw_garbage(elements, gather.bits, draw);
  std::vector<std::int64_t> written = draw_garbage(elements, scatter.bits, draw);
  std::vector<std::int64_t> free = draw_order(scatter.extent, draw);
  const auto is_padding = [&] { return padding && draw.chance(8); };
  for (const operation::GroupSlice& slice : operation::read_groups(problem, here()))
    for (std::int64_t at = slice.begin; at < slice.begin + slice.size; ++at) {
      const auto index = static_cast<std::size_t>(at);
      read[index] =
          gather.extent == 0 || is_padding() ? -1 : draw.up_to(gather.extent * gather.divide - 1);
      written[index] = free.empty() || is_padding() ? -1 : free.back();
      if (written[index] >= 0) free.pop_back();
    }
  if (gather.are_used()) gather_ = bytes_of(read, gather.bits);
  if (scatter.are_used()) scatter_ = bytes_of(written, scatter.bits);
}

DrawnGroups DrawnGroups::varied(const GemmProblem& problem, std::uint64_t seed) {
  Draw draw(seed);
  const GroupSizes form = problem.groups->sizes;
  if (form == GroupSizes::list) {
    DrawnGroups drawn(problem, {});
    for (std::int64_t group = 0; group < problem.l; ++group)
      drawn.list_.push_back(
          draw.chance(4)
              ? ListedExtents{problem.m, problem.n, problem.k}
              : ListedExtents{draw.up_to(problem.m), draw.up_to(problem.n), draw.up_to(problem.k)});
    return drawn;
  }
  const std::vector<std::int64_t> counts =
      form == GroupSizes::masked ? draw_masked(problem, draw)
                                 : draw_counts(problem.l, operation::ragged_extent(problem),
                                               problem.groups->alignment, draw);
  DrawnGroups drawn(problem, in_form(problem, counts, draw));
  drawn.draw_indices(problem, seed, true);
  return drawn;
}

DrawnGroups DrawnGroups::even(const GemmProblem& problem) {
  if (problem.groups->sizes == GroupSizes::list) {
    DrawnGroups drawn(problem, {});
    drawn.list_.assign(static_cast<std::size_t>(problem.l),
                       ListedExtents{problem.m, problem.n, problem.k});
    return drawn;
  }
  const std::vector<std::int64_t> counts = even_counts(problem);
  if (problem.groups->sizes != GroupSizes::labels) {
    Draw unused(0);
    DrawnGroups drawn(problem, in_form(problem, counts, unused));
    drawn.draw_indices(problem, 0, false);
    return drawn;
  }
  std::vector<std::int64_t> labels;
  for (std::size_t group = 0; group < counts.size(); ++group)
    labels.insert(labels.end(), static_cast<std::size_t>(counts[group]),
                  static_cast<std::int64_t>(group));
  labels.resize(static_cast<std::size_t>(operation::ragged_extent(problem)), -1);
  DrawnGroups drawn(problem, labels);
  drawn.draw_indices(problem, 0, false);
  return drawn;
}

}  // namespace gemmery::api
