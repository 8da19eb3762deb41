// SPDX-License-Identifier: Apache-2.0
// Writes abi::EpilogueParams member by member, because the number of operands is known only at run
// time.
#include "providers/templates/epilogue_parameters.hpp"

#include <algorithm>
#include <cstdint>
#include <variant>

#include <fmt/format.h>

#include "core/arithmetic.hpp"
#include "device/abi/group_regions.hpp"
#include "device/abi/pointer_array.hpp"
#include "device/abi/scale_layout.hpp"
#include "epilogue/addend.hpp"
#include "epilogue/blocks.hpp"
#include "epilogue/brief.hpp"
#include "epilogue/emit_cuda.hpp"
#include "epilogue/graph.hpp"
#include "kernel/epilogue.hpp"
#include "providers/templates/groups.hpp"
#include "providers/templates/split_schedule.hpp"

namespace gemmery::templates {
namespace {

static_assert(abi::by_pointers == gemmery::by_pointers);

// Appends values at their alignment.
class ParameterWriter {
 public:
  explicit ParameterWriter(runtime::LaunchPlan& plan) : plan_(plan) {}

  template <class Value>
  std::size_t write(const Value& value) {
    return append_parameter(value, plan_);
  }

  // A struct ends at its own alignment.
  void finish() { plan_.parameter_size = round_up(plan_.parameter_size, alignof(std::uint64_t)); }

 private:
  runtime::LaunchPlan& plan_;
};

abi::EpiloguePlace place_of(const EpilogueOperand& operand, const MatrixType& type,
                            bool is_turned) {
  return {.data = const_cast<void*>(std::get<Tensor>(operand.value).data()),
          .batch_stride = type.batch_stride,
          .row_stride = is_turned ? type.column_stride : type.row_stride,
          .column_stride = is_turned ? type.row_stride : type.column_stride};
}

abi::EpilogueTensor tensor_of(const EpilogueOperandRule& rule, epilogue::Reduction reduction,
                              bool is_turned) {
  const Adjacent along_row = is_turned ? Adjacent::along_m : Adjacent::along_n;
  return {.dtype = static_cast<abi::DType>(rule.dtype),
          .varies_l = rule.varies_l,
          .varies_m = is_turned ? rule.varies_n : rule.varies_m,
          .varies_n = is_turned ? rule.varies_m : rule.varies_n,
          .vector_bytes = rule.adjacent == along_row ? rule.alignment : std::uint8_t{0},
          .reduction = static_cast<abi::Reduction>(reduction),
          .block_rows = static_cast<unsigned>(is_turned ? rule.block.columns : rule.block.rows),
          .block_columns = static_cast<unsigned>(is_turned ? rule.block.rows : rule.block.columns),
          .is_swizzled = rule.layout != ScaleLayout::strided};
}

// The place of a swizzled result has the tiles along blocks as its row stride.
abi::EpiloguePlace place_of_result(const EpilogueOperand& operand, const EpilogueOperandRule& rule,
                                   const MatrixType& type, const GemmProblem& problem,
                                   bool is_turned) {
  abi::EpiloguePlace place = place_of(operand, type, is_turned);
  if (rule.layout == ScaleLayout::strided) return place;
  const std::int64_t blocks = rule.block.rows == 1
                                  ? epilogue::count_blocks(problem.n, rule.block.columns)
                                  : epilogue::count_blocks(problem.m, rule.block.rows);
  place.row_stride = abi::swizzled_tiles(blocks);
  return place;
}

epilogue::Reduction reduction_of(const epilogue::Graph& graph, const EpilogueOperandRule& rule) {
  const auto found = std::ranges::find(graph.outputs, rule.name, &epilogue::Output::name);
  return found == graph.outputs.end() ? epilogue::Reduction::none : found->reduction;
}

// Lays out the workspace: first the memory that must be 0 (the words of groups, then the counters
// of all reductions), then the parts.
class WorkspacePlan {
 public:
  WorkspacePlan(const GemmProblem& problem, bool is_turned, const abi::RegionGrid& regions)
      : has_groups_(problem.groups.has_value()),
        ragged_(has_groups_ ? ragged_extent_of(*problem.groups, is_turned) : abi::RaggedExtent::k),
        rows_(static_cast<std::uint64_t>(is_turned ? problem.n : problem.m)),
        columns_(static_cast<std::uint64_t>(is_turned ? problem.m : problem.n)),
        regions_(regions),
        value_bytes_(byte_width(epilogue_compute_type(problem.accumulator))) {}

  // Called for all reductions before any is added.
  void count(const abi::EpilogueTensor& tensor) {
    if (abi::is_by_groups(tensor, regions_))
      word_bytes_ += bytes_of_words();
    else
      counter_bytes_ += bytes_of_counters(tensor);
  }
  void begin_parts() {
    counters_placed_ = word_bytes_;
    part_bytes_ = round_up(zeroed_bytes(), workspace_unit);
  }

  abi::ReductionSchedule add(const abi::EpilogueTensor& tensor) {
    return abi::is_by_groups(tensor, regions_) ? add_words() : add_parts(tensor);
  }

  std::size_t zeroed_bytes() const { return word_bytes_ + counter_bytes_; }
  std::size_t bytes() const { return zeroed_bytes() == 0 ? 0 : part_bytes_; }

 private:
  std::size_t bytes_of_words() const { return std::size_t{regions_.groups} * sizeof(abi::UInt64); }
  std::size_t bytes_of_counters(const abi::EpilogueTensor& tensor) const {
    const unsigned bands = has_groups_ ? abi::group_band_count(tensor, regions_, ragged_)
                                       : abi::band_count(tensor, regions_);
    return std::size_t{bands} * sizeof(std::uint32_t);
  }

  abi::ReductionSchedule add_words() {
    const abi::ReductionSchedule schedule{.counters = 0,
                                          .partials = words_placed_,
                                          .finals = 1,
                                          .parts = regions_.groups,
                                          .arrivals = 0};
    words_placed_ += bytes_of_words();
    return schedule;
  }

  abi::ReductionSchedule add_parts(const abi::EpilogueTensor& tensor) {
    abi::ReductionSchedule schedule =
        has_groups_ ? schedule_in_groups(tensor) : schedule_of(tensor);
    schedule.counters = counters_placed_;
    schedule.partials = part_bytes_;
    counters_placed_ += bytes_of_counters(tensor);
    part_bytes_ += round_up(schedule.finals * schedule.parts * value_bytes_, workspace_unit);
    return schedule;
  }

  abi::ReductionSchedule schedule_of(const abi::EpilogueTensor& tensor) const {
    const unsigned regions_in_band = abi::regions_of_band(tensor, regions_);
    return {.counters = 0,
            .partials = 0,
            .finals = (tensor.varies_l ? regions_.batches : 1) * (tensor.varies_m ? rows_ : 1) *
                      (tensor.varies_n ? columns_ : 1),
            .parts = regions_in_band * abi::parts_of_region(tensor, regions_),
            .arrivals = regions_in_band * regions_.arrivals};
  }
  abi::ReductionSchedule schedule_in_groups(const abi::EpilogueTensor& tensor) const {
    return {.counters = 0,
            .partials = 0,
            .finals = abi::group_finals(tensor, regions_, ragged_, rows_, columns_),
            .parts = abi::group_parts(tensor, regions_),
            .arrivals = 0};
  }

  bool has_groups_;
  abi::RaggedExtent ragged_;  // as the kernel sees it
  std::uint64_t rows_;
  std::uint64_t columns_;
  abi::RegionGrid regions_;
  std::size_t value_bytes_;
  std::size_t word_bytes_ = 0;
  std::size_t counter_bytes_ = 0;
  std::size_t words_placed_ = 0;
  std::size_t counters_placed_ = 0;
  std::size_t part_bytes_ = 0;
};

enum class Slot { input, output, number };

Slot slot_of(const EpilogueOperandRule& rule) {
  return rule.is_output ? Slot::output : rule.is_number ? Slot::number : Slot::input;
}

// Visits the operands of one kind with their indices; returns their number.
template <class Visit>
std::size_t for_each(const std::vector<EpilogueOperandRule>& rules, Slot slot, Visit&& visit) {
  std::size_t count = 0;
  for (std::size_t index = 0; index < rules.size(); ++index) {
    if (slot_of(rules[index]) != slot) continue;
    visit(index);
    ++count;
  }
  return count;
}

std::string default_comment(bool is_turned) {
  return std::string("// D = alpha * accum + beta * C") +
         (is_turned ? ", as D^T = B^T A^T: a is B^T, b is A^T" : "") + "\n";
}

constexpr std::string_view turned_comment =
    "// as D^T = B^T A^T: a is B^T, b is A^T, m and n are turned\n";

}  // namespace

ProgramTensors program_tensors(EpilogueId epilogue, bool is_turned) {
  ProgramTensors tensors;
  if (epilogue == default_epilogue) return tensors;
  const EpilogueRules& rules = rules_of(epilogue);
  const auto tensor = [&](std::size_t index) {
    const EpilogueOperandRule& rule = rules.operands[index];
    return tensor_of(rule, reduction_of(rules.program.graph(), rule), is_turned);
  };
  for_each(rules.operands, Slot::input, [&](std::size_t index) {
    tensors.inputs.push_back(tensor(index));
    tensors.input_operands.push_back(index);
  });
  for_each(rules.operands, Slot::output,
           [&](std::size_t index) { tensors.outputs.push_back(tensor(index)); });
  tensors.addend = epilogue::find_addend(epilogue);
  return tensors;
}

bool has_reductions(EpilogueId epilogue) {
  if (epilogue == default_epilogue) return false;
  const auto is_reduced = [](const epilogue::Output& output) {
    return output.reduction != epilogue::Reduction::none;
  };
  return std::ranges::any_of(rules_of(epilogue).program.graph().outputs, is_reduced);
}

EpilogueText epilogue_text(const Kernel& kernel, bool is_turned, std::string_view parameters,
                           std::string_view function) {
  if (kernel.epilogue() == default_epilogue) {
    return {.comment = default_comment(is_turned),
            .head = "",
            .parameters = std::string(parameters),
            .call = fmt::format("{}<design>", function)};
  }
  const OperandRules& rules = kernel.operands();
  const DType compute = epilogue_compute_type(rules.accumulator);
  const bool is_brief = epilogue::takes_brief_formulas(kernel.epilogue(), rules.out.dtype, compute);
  return {.comment = std::string(is_turned ? turned_comment : ""),
          .head = epilogue::emit_struct(kernel.epilogue(), is_turned, is_brief) + "\n",
          .parameters = fmt::format("ProgramParams<{}, EpilogueParams<Epilogue::inputs, "
                                    "Epilogue::outputs, Epilogue::numbers, {}>>",
                                    parameters, compute == DType::float64 ? "double" : "float"),
          .call = fmt::format("{}<design, Epilogue>", function)};
}

Status check_without_blocks(EpilogueId epilogue) {
  if (epilogue == default_epilogue) return Status::success();
  const std::vector<epilogue::Node>& nodes = rules_of(epilogue).program.graph().nodes;
  const auto node = std::ranges::find(nodes, epilogue::NodeKind::reduction, &epilogue::Node::kind);
  if (node == nodes.end()) return Status::success();
  return kernel::refuse_node(epilogue, static_cast<std::size_t>(node - nodes.begin()),
                             "expected a program without reductions of blocks in this family");
}

Status check_blocks(EpilogueId epilogue, const BlockSpace& space) {
  if (epilogue == default_epilogue) return Status::success();
  const epilogue::Graph& graph = rules_of(epilogue).program.graph();
  if (!epilogue::has_block_reductions(graph)) return Status::success();
  int bytes = 0;
  const bool is_nested = epilogue::make_stages(graph).stages.size() > 2;
  for (std::size_t at = 0; at < graph.nodes.size(); ++at) {
    if (graph.nodes[at].kind != epilogue::NodeKind::reduction) continue;
    const auto& [kind, block] = graph.nodes[at].reduction;
    const auto refuse = [&](std::string_view why) {
      return kernel::refuse_node(epilogue, at, why);
    };
    if (is_nested) return refuse("expected reductions of blocks that do not read one another");
    if (kind == epilogue::Reduction::sum) return refuse("expected amax, max or min of blocks");
    if (block.rows == 0 || block.columns == 0 || space.rows % block.rows != 0 ||
        space.columns % block.columns != 0)
      return refuse(
          fmt::format("expected blocks that divide tiles of {}x{}", space.rows, space.columns));
    bytes += space.rows / block.rows * (space.columns / block.columns) * space.value_bytes;
    if (bytes > space.shared_bytes)
      return refuse(
          fmt::format("expected fewer blocks in a tile of {}x{}, whose values have {} "
                      "bytes of shared memory",
                      space.rows, space.columns, space.shared_bytes));
  }
  return Status::success();
}

Status check_row_blocks(EpilogueId epilogue, const RowSpace& space) {
  if (epilogue == default_epilogue) return Status::success();
  const epilogue::Graph& graph = rules_of(epilogue).program.graph();
  if (!epilogue::has_block_reductions(graph)) return Status::success();
  const bool is_nested = epilogue::make_stages(graph).stages.size() > 2;
  for (std::size_t at = 0; at < graph.nodes.size(); ++at) {
    if (graph.nodes[at].kind != epilogue::NodeKind::reduction) continue;
    const epilogue::Block block = graph.nodes[at].reduction.block;
    const auto refuse = [&](std::string_view why) {
      return kernel::refuse_node(epilogue, at, why);
    };
    const int rows = space.is_turned ? block.columns : block.rows;
    const int columns = space.is_turned ? block.rows : block.columns;
    if (is_nested) return refuse("expected reductions of blocks that do not read one another");
    if (rows != 1)
      return refuse(space.is_turned ? "expected blocks of one column, which is stored contiguously"
                                    : "expected blocks of one row");
    const bool is_whole = columns > 0 && space.columns % columns == 0 &&
                          (columns % space.run == 0 || space.run % columns == 0);
    if (!is_whole || (columns & (columns - 1)) != 0)
      return refuse(
          fmt::format("expected blocks of a power of two up to {} elements", space.columns));
  }
  return Status::success();
}

Status check_carried(const GemmProblem& problem) {
  if (Status status = check_without_blocks(problem.epilogue); !status) return status;
  return check_something_reduced(problem);
}

Status check_something_reduced(const GemmProblem& problem) {
  if (problem.epilogue == default_epilogue) return Status::success();
  if (problem.m != 0 && problem.n != 0 && problem.l != 0) return Status::success();
  const EpilogueRules& rules = rules_of(problem.epilogue);
  for (const EpilogueOperandRule& rule : rules.operands) {
    if (!rule.is_output || reduction_of(rules.program.graph(), rule) == epilogue::Reduction::none)
      continue;
    return Status::fail(
        fmt::format("epilogue operand {}: expected something to reduce, got {} x {}x{} elements "
                    "(kernels of the "
                    "host write reductions of nothing)",
                    rule.name, problem.l, problem.m, problem.n));
  }
  return Status::success();
}

void append_epilogue_parameters(const GemmArguments& arguments, EpilogueId epilogue, bool is_turned,
                                const abi::RegionGrid& regions, runtime::LaunchPlan& plan) {
  const EpilogueRules& rules = rules_of(epilogue);
  const epilogue::Graph& graph = rules.program.graph();
  const GemmProblem& problem = arguments.problem();
  const auto& operands = arguments.epilogue_operands();
  WorkspacePlan workspace(problem, is_turned, regions);
  const auto tensor = [&](std::size_t index) {
    const EpilogueOperandRule& rule = rules.operands[index];
    return tensor_of(rule, reduction_of(graph, rule), is_turned);
  };
  const auto is_reduced = [&](std::size_t index) {
    return tensor(index).reduction != abi::Reduction::none;
  };
  for_each(rules.operands, Slot::output, [&](std::size_t index) {
    if (is_reduced(index)) workspace.count(tensor(index));
  });
  workspace.begin_parts();

  ParameterWriter writer(plan);
  plan.workspace_slot = writer.write(static_cast<void*>(nullptr));
  writer.write(regions);
  // An empty array has one element.
  const auto write_places = [&](Slot slot) {
    const std::size_t count = for_each(rules.operands, slot, [&](std::size_t index) {
      writer.write(place_of_result(operands[index], rules.operands[index],
                                   problem.epilogue_operands[index], problem, is_turned));
    });
    if (count == 0) writer.write(abi::EpiloguePlace{});
  };
  write_places(Slot::input);
  write_places(Slot::output);
  const std::size_t outputs = for_each(rules.operands, Slot::output, [&](std::size_t index) {
    writer.write(is_reduced(index) ? workspace.add(tensor(index)) : abi::ReductionSchedule{});
  });
  if (outputs == 0) writer.write(abi::ReductionSchedule{});
  const bool is_double = epilogue_compute_type(problem.accumulator) == DType::float64;
  const auto write_number = [&](double value) {
    if (is_double)
      writer.write(value);
    else
      writer.write(static_cast<float>(value));
  };
  const std::size_t numbers = for_each(rules.operands, Slot::number, [&](std::size_t index) {
    write_number(std::get<double>(operands[index].value));
  });
  if (numbers == 0) write_number(0);
  writer.finish();
  plan.workspace_bytes = workspace.bytes();
  plan.zeroed_workspace_bytes = workspace.zeroed_bytes();
  plan.leaves_zeros = true;
}

}  // namespace gemmery::templates
