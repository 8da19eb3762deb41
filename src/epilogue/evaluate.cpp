// SPDX-License-Identifier: Apache-2.0
// Assigns blocks to values and runs the loops.
#include "epilogue/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/invariant.hpp"
#include "core/number.hpp"

namespace gemmery::epilogue {
namespace {

double toward_zero(double rounded, double value, DType dtype) noexcept {
  if (!(std::fabs(rounded) > std::fabs(value)) && !std::isnan(rounded)) return rounded;
  if (!std::isfinite(value)) return rounded;
  // The next smaller magnitude. If rounding to nearest overflowed, the largest number.
  const number::FloatFormat format = number::float_format(dtype);
  std::uint32_t code = number::encode(format, std::fabs(value));
  code = std::min(code, format.largest() + 1) - 1;
  return std::copysign(number::decode(format, code), value);
}

double cast_to_integer(double value, const CastRule& rule) noexcept {
  const double whole = rule.rounding == Rounding::toward_zero ? std::trunc(value) : value;
  return number::rounded_to(rule.dtype, {whole, 0});  // saturates; NaN gives 0
}

double cast_to_float(double value, const CastRule& rule) noexcept {
  double result = number::rounded_to(rule.dtype, {value, 0});
  if (rule.rounding == Rounding::toward_zero) result = toward_zero(result, value, rule.dtype);
  const bool is_out_of_range = !std::isfinite(result) && !std::isnan(value);
  if (rule.overflow == Overflow::saturate && is_out_of_range)
    return std::copysign(number::rounding_of(rule.dtype).largest, value);
  return result;
}

// --- which block holds what ---

// Blocks of a machine. Those of the accumulator, inputs and constants are permanent; the others are
// reused.
class BlockPlan {
 public:
  explicit BlockPlan(const Graph& graph)
      : graph_(graph), of_node_(graph.nodes.size()), uses_(graph.nodes.size()) {
    for (const Node& node : graph.nodes)
      for (const NodeId operand : node.operands)
        if (operand != no_node) ++uses_[operand];
    for (const Output& output : graph.outputs) ++uses_[output.value];  // never released
    next_ = 1 + graph.inputs.size();
  }

  // Nodes are visited in order.
  std::size_t place(NodeId id) {
    const Node& node = graph_.nodes[id];
    if (node.kind == NodeKind::accumulator) return of_node_[id] = 0;
    if (node.kind == NodeKind::input) return of_node_[id] = 1 + node.input;
    if (node.kind == NodeKind::constant) return of_node_[id] = next_++;
    // Released after the result has its block: a loop must not overwrite what it still reads.
    const std::size_t result = take();
    for (const NodeId operand : node.operands)
      if (operand != no_node) release(operand);
    return of_node_[id] = result;
  }
  std::size_t of(NodeId id) const { return id == no_node ? 0 : of_node_[id]; }
  std::size_t count() const { return next_; }

 private:
  std::size_t take() {
    if (free_.empty()) return next_++;
    const std::size_t block = free_.back();
    free_.pop_back();
    return block;
  }
  void release(NodeId id) {
    const NodeKind kind = graph_.nodes[id].kind;
    const bool is_computed = kind == NodeKind::operation || kind == NodeKind::cast;
    if (--uses_[id] == 0 && is_computed) free_.push_back(of_node_[id]);
  }

  const Graph& graph_;
  std::vector<std::size_t> of_node_;
  std::vector<int> uses_;
  std::vector<std::size_t> free_;
  std::size_t next_ = 0;
};

}  // namespace

double cast_value(double value, const CastRule& rule) noexcept {
  if (rule.dtype == DType::float64) return value;
  return is_integer(rule.dtype) ? cast_to_integer(value, rule) : cast_to_float(value, rule);
}

double in_compute_type(double value, DType compute) noexcept {
  return compute == DType::float32 ? static_cast<float>(value) : value;
}

double overflow_threshold(DType compute) noexcept {
  const number::Rounding rounding = number::rounding_of(compute);
  // Half a unit above the largest number; infinity for double.
  return rounding.largest * (1 + rounding.unit / 2);
}

template <class T>
Machine<T>::Machine(const Graph& graph, DType compute)
    : compute_(compute), is_wider_(std::is_same_v<T, double> && compute == DType::float32) {
  BlockPlan plan(graph);
  std::vector<std::pair<std::size_t, T>> constants;
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    require(node.kind != NodeKind::reduction, "a machine runs one stage of a program");
    const std::size_t result = plan.place(static_cast<NodeId>(id));
    if (node.kind == NodeKind::constant)
      constants.emplace_back(result, static_cast<T>(in_compute_type(node.constant, compute)));
    if (node.kind != NodeKind::operation && node.kind != NodeKind::cast) continue;
    steps_.push_back({.loop = node.kind == NodeKind::operation ? loop_of<T>(node.op) : nullptr,
                      .cast = node.cast,
                      .x = plan.of(node.operands[0]),
                      .y = plan.of(node.operands[1]),
                      .z = plan.of(node.operands[2]),
                      .result = result});
  }
  for (const Output& output : graph.outputs) output_blocks_.push_back(plan.of(output.value));
  values_.resize(plan.count() * block_length);
  for (const auto& [at, value] : constants) std::fill_n(block(at), block_length, value);
}

template <class T>
void Machine<T>::run(int count) noexcept {
  for (const Step& step : steps_) {
    if (step.loop == nullptr) {
      cast_block(step, count);
    } else {
      step.loop(block(step.x), block(step.y), block(step.z), block(step.result), count);
      if (is_wider_) limit_block(block(step.result), count);
    }
  }
}

template <class T>
void Machine<T>::limit_block(T* values, int count) const noexcept {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const auto threshold = static_cast<T>(overflow_threshold(compute_));
  for (int i = 0; i < count; ++i) {
    values[i] = values[i] >= threshold ? infinity : values[i];
    values[i] = values[i] <= -threshold ? -infinity : values[i];
  }
}

template <class T>
void Machine<T>::cast_block(const Step& step, int count) noexcept {
  const T* const x = block(step.x);
  T* const result = block(step.result);
  for (int i = 0; i < count; ++i) {
    const double narrow = cast_value(static_cast<double>(x[i]), step.cast);
    result[i] = static_cast<T>(in_compute_type(narrow, compute_));
  }
}

template class Machine<float>;
template class Machine<double>;

}  // namespace gemmery::epilogue
