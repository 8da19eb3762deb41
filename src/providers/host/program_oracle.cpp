// SPDX-License-Identifier: Apache-2.0
// Intervals of elements and reductions, and verdicts on stored results.
#include "providers/host/program_oracle.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "epilogue/addend.hpp"
#include "epilogue/blocks.hpp"
#include "epilogue/brief.hpp"
#include "epilogue/evaluate.hpp"
#include "epilogue/evaluate_interval.hpp"
#include "operation/groups.hpp"
#include "platform/parallel.hpp"
#include "providers/host/block_places.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

using epilogue::Interval;
using epilogue::IntervalMachine;
using epilogue::IntervalReduction;

// --- verdicts -----------------------------------------------------------------------------------

// The middle of an interval and its radius.
struct Middle {
  double value;
  double reach;
};
Middle middle_of(const Interval& x) {
  if (!x.has_numbers) return {std::numeric_limits<double>::quiet_NaN(), 0};
  if (!std::isfinite(x.low) || !std::isfinite(x.high))
    return {std::isfinite(x.low) ? x.low : x.high, x.low == x.high ? 0 : infinity};
  return {x.low + (x.high - x.low) / 2, (x.high - x.low) / 2};
}

double ratio_of(const Middle& middle, double got, bool is_right) {
  const double error = std::fabs(got - middle.value);
  if (!std::isfinite(error)) return is_right ? 0 : infinity;
  if (middle.reach > 0) return std::isfinite(middle.reach) ? error / middle.reach : 0;
  return is_right ? 0 : infinity;
}

// False if every number of the type passes, or every one of a sign.
bool has_bound(const Interval& stored, DType dtype) {
  const Interval any = epilogue::stored_interval(Interval::everything(), dtype);
  const bool takes_positive = stored.low <= 0 && stored.high >= any.high;
  const bool takes_negative = stored.low <= any.low && stored.high >= 0 && any.low < 0;
  return !stored.has_numbers || (!takes_positive && !takes_negative);
}

void judge(Comparison& comparison, const Interval& x, DType dtype, Mismatch at) {
  const Interval stored = epilogue::stored_interval(x, dtype);
  const bool is_right = stored.contains(at.got);
  const Middle middle = middle_of(stored);
  at.exact = middle.value;
  at.allowed = middle.reach;
  ++comparison.elements;
  const bool is_bounded = has_bound(stored, dtype);
  comparison.without_bound += is_bounded ? 0 : 1;
  if (!is_bounded && is_right) return;
  const double ratio = ratio_of(middle, at.got, is_right);
  comparison.worst_ratio =
      std::max(comparison.worst_ratio, is_right ? std::min(ratio, 1.0) : std::max(ratio, 1.0));
  const double error = std::fabs(at.got - middle.value);
  if (std::isfinite(error)) comparison.worst_error = std::max(comparison.worst_error, error);
  if (is_right) return;
  ++comparison.mismatches;
  if (!comparison.first) comparison.first = at;
}

double element(const Tensor& view, std::int64_t l, std::int64_t m, std::int64_t n) {
  return load(view.dtype(), first_of(view, l), m * view.stride(1) + n * view.stride(2));
}

// --- what is judged -----------------------------------------------------------------------------

struct Result {
  std::size_t output;  // of the graph
  Tensor view;
  epilogue::Reduction reduction;
  std::string name;
  std::optional<BlockPlaces> blocks = std::nullopt;  // of a value of blocks
};

// The values of one reduction within a program, of all blocks of one matrix.
class BlockIntervals {
 public:
  BlockIntervals(const epilogue::BlockReduction& reduction, const GemmProblem& problem)
      : reduction_(reduction),
        rows_(epilogue::count_blocks(problem.m, reduction.block.rows)),
        columns_(epilogue::count_blocks(problem.n, reduction.block.columns)) {}
  void begin() {
    items_.assign(static_cast<std::size_t>(rows_ * columns_), IntervalReduction(reduction_.kind));
  }
  void add(std::int64_t row, std::int64_t column, const Interval& x) {
    items_[index(row, column)].add(x);
  }
  void finish(DType compute) {
    values_.clear();
    for (const IntervalReduction& item : items_) values_.push_back(item.result(compute));
  }
  const Interval& at(std::int64_t row, std::int64_t column) const {
    return values_[index(row, column)];
  }
  bool is_finished() const { return !values_.empty(); }
  std::int32_t rows() const { return reduction_.block.rows; }

 private:
  std::size_t index(std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(epilogue::block_of(row, reduction_.block.rows) * columns_ +
                                    epilogue::block_of(column, reduction_.block.columns));
  }

  epilogue::BlockReduction reduction_;
  std::int64_t rows_, columns_;
  std::vector<IntervalReduction> items_;
  std::vector<Interval> values_;
};

// The reductions of one result while elements are added.
class Reductions {
 public:
  explicit Reductions(const Result& result)
      : extents_{result.view.extent(0), result.view.extent(1), result.view.extent(2)},
        items_(static_cast<std::size_t>(extents_[0] * extents_[1] * extents_[2]),
               IntervalReduction(result.reduction)) {}
  IntervalReduction& at(std::int64_t l, std::int64_t m, std::int64_t n) {
    const auto along = [&](std::size_t d, std::int64_t i) { return extents_[d] == 1 ? 0 : i; };
    return items_[static_cast<std::size_t>((along(0, l) * extents_[1] + along(1, m)) * extents_[2] +
                                           along(2, n))];
  }
  void merge(const Reductions& other) {
    for (std::size_t i = 0; i < items_.size(); ++i) items_[i].add(other.items_[i]);
  }
  std::size_t size() const { return items_.size(); }

 private:
  std::array<std::int64_t, 3> extents_;
  std::vector<IntervalReduction> items_;
};

class ProgramComparison {
 public:
  // `unjudged`: results by the number of their operand.
  ProgramComparison(const GemmArguments& arguments, const DeclaredMath& declared,
                    std::span<const std::size_t> unjudged = {})
      : arguments_(arguments),
        problem_(arguments.problem()),
        declared_(declared),
        graph_(rules_of(problem_.epilogue).program.graph()),
        compute_(epilogue_compute_type(problem_.accumulator)),
        addend_(declared.adds_vector ? epilogue::find_added_input(graph_) : std::nullopt),
        addend_unit_(2 * error_model(declared).accumulator_unit),
        is_brief_(epilogue::takes_brief_formulas(problem_.epilogue, problem_.out.dtype, compute_)),
        stages_(epilogue::make_stages(graph_)) {
    for (const epilogue::BlockReduction& reduction : stages_.reductions)
      blocks_.emplace_back(reduction, problem_);
    add_result(0, arguments.out(), "out");
    const auto& operands = arguments.epilogue_operands();
    for (std::size_t i = graph_.inputs.size(); i < operands.size(); ++i)
      if (std::ranges::find(unjudged, i) == unjudged.end())
        add_result(1 + i - graph_.inputs.size(), std::get<Tensor>(operands[i].value),
                   operands[i].name);
  }

  Comparison run() {
    for (std::int64_t batch = 0; batch < problem_.l; ++batch) compare_matrix(batch);
    for (std::size_t i = 0; i < reduced_.size(); ++i) compare_reduced(reduced_[i], totals_[i]);
    return all_;
  }

 private:
  void add_result(std::size_t output, const Tensor& view, const std::string& name) {
    Result result{output, view, graph_.outputs[output].reduction, name};
    if (output > 0) {
      const EpilogueOperandRule& rule =
          rules_of(problem_.epilogue).operands[graph_.inputs.size() + output - 1];
      if (rule.block != epilogue::one_element)
        result.blocks.emplace(rule.block, rule.layout, view, arguments_);
    }
    if (result.reduction == epilogue::Reduction::none) {
      full_.push_back(result);
    } else {
      reduced_.push_back(result);
      totals_.emplace_back(result);
    }
  }

  void compare_matrix(std::int64_t batch) {
    const OracleResult sums = compute_oracle(arguments_, declared_, batch);
    for (const epilogue::Stage& stage : stages_.stages)
      if (!stage.reductions.empty()) reduce_blocks(stage, batch, sums);
    // Each thread has reductions of its own, unless those are as large as out.
    std::size_t items = 0;
    for (const Reductions& reductions : totals_) items += reductions.size();
    const std::int64_t grain =
        items > 65536 ? problem_.m : std::max<std::int64_t>(16, problem_.m / 16);
    std::mutex mutex;
    platform::parallel_for(problem_.m, std::max<std::int64_t>(grain, 1),
                           [&](std::int64_t begin, std::int64_t end) {
                             compare_rows(batch, begin, end, sums, mutex);
                           });
  }

  void compare_rows(std::int64_t batch, std::int64_t begin, std::int64_t end,
                    const OracleResult& sums, std::mutex& mutex) {
    IntervalMachine machine(stages_.stages.back().graph, compute_, is_brief_);
    Comparison comparison;
    std::vector<Reductions> reductions(reduced_.begin(), reduced_.end());
    std::vector<Interval> inputs(graph_.inputs.size() + blocks_.size());
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t column = 0; column < problem_.n; ++column) {
        run_element(machine, inputs, {batch, row, column}, sums);
        for (const Result& result : full_)
          if (const auto got = stored_value(result, {batch, row, column}))
            judge(comparison, machine.output(result.output), result.view.dtype(),
                  {.batch = batch,
                   .row = row,
                   .column = column,
                   .got = *got,
                   .exact = 0,
                   .allowed = 0,
                   .output = result.name});
        for (std::size_t i = 0; i < reduced_.size(); ++i)
          reductions[i].at(batch, row, column).add(machine.output(reduced_[i].output));
      }
    const std::scoped_lock lock(mutex);
    all_.merge(comparison);
    for (std::size_t i = 0; i < reduced_.size(); ++i) totals_[i].merge(reductions[i]);
  }

  struct Element {
    std::int64_t batch, row, column;
  };

  void run_element(IntervalMachine& machine, std::vector<Interval>& inputs, const Element& at,
                   const OracleResult& sums) const {
    read_inputs(inputs, at.batch, at.row, at.column);
    const Interval sum = sum_at(sums, at.row * problem_.n + at.column, addend_error(inputs));
    machine.run(sum, inputs);
  }

  // What a result has for an element; a value of blocks, for the first element of each block.
  static std::optional<double> stored_value(const Result& result, const Element& at) {
    if (!result.blocks) return element(result.view, at.batch, at.row, at.column);
    const auto place = result.blocks->find(at.row, at.column);
    if (!place) return std::nullopt;
    return load(result.view.dtype(), first_of(result.view, at.batch), *place);
  }

  // The intervals of the stage's reductions: threads compute whole blocks.
  void reduce_blocks(const epilogue::Stage& stage, std::int64_t batch, const OracleResult& sums) {
    std::int64_t band = 1;
    for (const std::size_t at : stage.reductions) {
      blocks_[at].begin();
      const std::int32_t rows = blocks_[at].rows();
      band = rows == 0 || band > problem_.m ? std::max<std::int64_t>(problem_.m, 1)
                                            : std::lcm(band, rows);
    }
    platform::parallel_for(problem_.m, band, [&](std::int64_t begin, std::int64_t end) {
      IntervalMachine machine(stage.graph, compute_, is_brief_);
      std::vector<Interval> inputs(graph_.inputs.size() + blocks_.size());
      for (std::int64_t row = begin; row < end; ++row)
        for (std::int64_t column = 0; column < problem_.n; ++column) {
          run_element(machine, inputs, {batch, row, column}, sums);
          for (std::size_t output = 0; output < stage.reductions.size(); ++output)
            blocks_[stage.reductions[output]].add(row, column, machine.output(output));
        }
    });
    for (const std::size_t at : stage.reductions) blocks_[at].finish(compute_);
  }

  // The error of an input that tensor cores add to the accumulators.
  double addend_error(const std::vector<Interval>& inputs) const {
    if (!addend_) return 0;
    const double size = std::fabs(inputs[*addend_].high);
    return std::isfinite(size) ? addend_unit_ * size : 0;
  }

  static Interval sum_at(const OracleResult& sums, std::int64_t index, double further_error) {
    const auto i = static_cast<std::size_t>(index);
    const double low = sums.low.empty() ? 0 : std::fabs(sums.low[i]);
    Interval sum = Interval::around(sums.value[i], sums.bound[i] + low + further_error);
    sum.may_be_nan = sum.may_be_nan || sums.may_be_nan[i] != 0;
    return sum;
  }

  void read_inputs(std::vector<Interval>& inputs, std::int64_t batch, std::int64_t row,
                   std::int64_t column) const {
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      if (blocks_[i].is_finished()) inputs[graph_.inputs.size() + i] = blocks_[i].at(row, column);
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const auto& value = arguments_.epilogue_operands()[i].value;
      const auto* const tensor = std::get_if<Tensor>(&value);
      const double number =
          tensor != nullptr ? element(*tensor, batch, row, column) : std::get<double>(value);
      inputs[i] = Interval::exactly(epilogue::in_compute_type(number, compute_));
    }
  }

  void compare_reduced(const Result& result, Reductions& totals) {
    const Tensor& view = result.view;
    for (std::int64_t l = 0; l < view.extent(0); ++l)
      for (std::int64_t m = 0; m < view.extent(1); ++m)
        for (std::int64_t n = 0; n < view.extent(2); ++n)
          judge(all_, totals.at(l, m, n).result(compute_), view.dtype(),
                {.batch = l,
                 .row = m,
                 .column = n,
                 .got = element(view, l, m, n),
                 .exact = 0,
                 .allowed = 0,
                 .output = result.name});
  }

  const GemmArguments& arguments_;
  const GemmProblem& problem_;
  DeclaredMath declared_;
  const epilogue::Graph& graph_;
  DType compute_;
  std::optional<std::size_t> addend_;  // the graph's input that tensor cores add
  double addend_unit_;
  bool is_brief_;
  epilogue::Stages stages_;
  std::vector<BlockIntervals> blocks_;  // of the matrix that is compared
  std::vector<Result> full_, reduced_;
  std::vector<Reductions> totals_;  // of reduced_
  Comparison all_;
};

// --- rows ---------------------------------------------------------------------------------------

// True if a row of out contains everything that this result is made of.
bool is_of_one_row(const EpilogueOperandRule& rule, const GemmProblem& problem) {
  if (rule.is_output && rule.block != epilogue::one_element)
    return rule.block.rows == 1 && rule.layout == ScaleLayout::strided;
  return !rule.is_output ||
         ((rule.varies_m || problem.m <= 1) && (rule.varies_l || problem.l <= 1));
}

// Rows cannot be judged one by one if a reduction within the program reaches over several.
void refuse_blocks_of_rows(const GemmProblem& problem) {
  for (const epilogue::Node& node : rules_of(problem.epilogue).program.graph().nodes) {
    if (node.kind != epilogue::NodeKind::reduction || node.reduction.block.rows == 1) continue;
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = "epilogue",
                 .expected = "reductions of blocks of one row in a problem of this size, of which "
                             "random rows are verified",
                 .got = "blocks of " + epilogue::block_text(node.reduction.block),
                 .hint = "verify it on a smaller problem"});
  }
}

Comparison check_program_row(const GemmArguments& arguments, const DeclaredMath& declared,
                             std::int64_t batch, std::int64_t row) {
  std::vector<std::size_t> unjudged;
  const std::vector<EpilogueOperandRule>& operands =
      rules_of(arguments.problem().epilogue).operands;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!is_of_one_row(operands[i], arguments.problem())) unjudged.push_back(i);
  const GemmArguments one = operation::GroupSlicer::row_of(arguments, batch, row);
  Comparison comparison = ProgramComparison(one, declared, unjudged).run();
  if (comparison.first) {
    comparison.first->batch = batch;
    comparison.first->row = row;
  }
  return comparison;
}

}  // namespace

Comparison compare_program_with_oracle(const GemmArguments& arguments,
                                       const DeclaredMath& declared) {
  return ProgramComparison(arguments, declared).run();
}

RowSample check_rows_of_program(const GemmArguments& arguments, const DeclaredMath& declared,
                                int rows, std::uint64_t seed) {
  const GemmProblem& problem = arguments.problem();
  RowSample sample;
  for (const EpilogueOperandRule& rule : rules_of(problem.epilogue).operands)
    sample.skipped += is_of_one_row(rule, problem) ? 0 : 1;
  if (problem.m == 0 || problem.l == 0) return sample;
  refuse_blocks_of_rows(problem);
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
  };
  for (; sample.rows < rows; ++sample.rows) {
    const std::int64_t batch = below(problem.l);
    sample.comparison.merge(
        check_program_row(arguments, declared, batch, whole_row(arguments.a(), below(problem.m))));
  }
  return sample;
}

}  // namespace gemmery::host
