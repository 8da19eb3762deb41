// SPDX-License-Identifier: Apache-2.0
// Checks launch rules at registration, and problems against them.
#include "providers/user/launch_rule.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "providers/user/refusal.hpp"
#include "providers/user/user_fault.hpp"

namespace gemmery::user {
namespace {

// CUDA C++ programming guide, "Compute Capabilities": the same on every device since sm_50.
constexpr std::uint32_t most_threads = 1024;
constexpr std::array<std::uint32_t, 3> most_block{1024, 1024, 64};
constexpr std::uint32_t portable_cluster = 8;

std::uint64_t product(const std::array<std::uint32_t, 3>& extents) {
  return std::uint64_t{extents[0]} * extents[1] * extents[2];
}

bool holds(SlotType type, std::int64_t value) {
  switch (type) {
    case SlotType::i32:
      return value == static_cast<std::int32_t>(value);
    case SlotType::u32:
      return value == static_cast<std::uint32_t>(value);
    case SlotType::u64:
      return value >= 0;
    default:
      return true;
  }
}

}  // namespace

// --- a recipe -----------------------------------------------------------------------------------

LaunchRule::LaunchRule(const UserKernel& kernel, const std::string& kernel_name)
    : kernel_(kernel),
      kernel_name_(kernel_name),
      scope_{kernel.operands, kernel.epilogue ? &*kernel.epilogue : nullptr} {
  if (kernel.launch.entry.empty())
    refuse(kernel_name_, "launch.entry", "the name of its __global__ function", "none");
  read_parameters();
  if (!kernel.launch.grid_function) {
    for (const std::string& factors : kernel.launch.grid)
      grid_.emplace_back(factors, kernel_name_ + ": launch.grid");
  }
  check_shape();
  require_all_operands();
  require_all_extents();
  require_strides();
}

void LaunchRule::read_parameters() {
  const std::vector<std::string>& words = kernel_.launch.parameters;
  if (words.size() > runtime::LaunchPlan::most_parameters) {
    refuse(kernel_name_, "launch.parameters",
           fmt::format("at most {}", runtime::LaunchPlan::most_parameters),
           std::to_string(words.size()));
  }
  for (const std::string& word : words) {
    try {
      slots_.push_back(parse_slot(word, scope_));
    } catch (const Error& error) {
      refuse(kernel_name_, error.operand(), error.expected(), error.got(), error.hint());
    }
    const Slot& slot = slots_.back();
    if (slot.kind == SlotKind::tensor_map) check_map(slot, word);
    const std::size_t unit = alignment_of(slot.type);
    parameter_bytes_ = (parameter_bytes_ + unit - 1) / unit * unit;
    offsets_.push_back(static_cast<std::uint16_t>(parameter_bytes_));
    parameter_bytes_ += size_of(slot.type);
    if (parameter_bytes_ > runtime::LaunchPlan::parameter_capacity) {
      refuse(kernel_name_, "launch.parameters",
             fmt::format("at most {} bytes of them", runtime::LaunchPlan::parameter_capacity),
             "more");
    }
  }
}

// The rules of cuTensorMapEncodeTiled that can be checked without a tensor.
void LaunchRule::check_map(const Slot& slot, const std::string& word) const {
  const std::string field = "parameter \"" + word + "\"";
  if (slot.operand >= first_of_epilogue)
    refuse(kernel_name_, field, "a map of A, B, C or out", "one of the epilogue's tensors");
  const OperandRule& rule = rule_of(slot.operand, kernel_.operands);
  if (rule.layout == LayoutRule::any || rule.alignment != 16) {
    refuse(kernel_name_, field, "an operand of a row or column layout, aligned to 16 bytes",
           fmt::format("layout {}, alignment {}", gemmery::name(rule.layout), rule.alignment));
  }
  const std::uint32_t inner = rule.layout == LayoutRule::row ? slot.box[2] : slot.box[1];
  const std::size_t bytes = inner * byte_width(rule.dtype);
  const bool fits_swizzle =
      slot.swizzle_bytes == 0 || bytes <= static_cast<std::size_t>(slot.swizzle_bytes);
  if (bytes % 16 != 0 || !fits_swizzle) {
    refuse(kernel_name_, field,
           "a box whose contiguous side is a multiple of 16 bytes and at most the swizzle",
           fmt::format("{} bytes, swizzle {}", bytes, slot.swizzle_bytes));
  }
}

void LaunchRule::check_shape() const {
  const LaunchRecipe& launch = kernel_.launch;
  const auto is_within = [&](std::size_t axis) {
    return launch.block[axis] >= 1 && launch.block[axis] <= most_block[axis];
  };
  if (!is_within(0) || !is_within(1) || !is_within(2) || product(launch.block) > most_threads) {
    refuse(kernel_name_, "launch.block", "1 to 1024 threads, at most 64 along z",
           fmt::format("{}", fmt::join(launch.block, " x ")));
  }
  if (product(launch.cluster) < 1 || product(launch.cluster) > portable_cluster) {
    refuse(kernel_name_, "launch.cluster", "1 to 8 blocks",
           fmt::format("{}", fmt::join(launch.cluster, " x ")));
  }
  const bool has_workspace = kernel_.workspace_function || kernel_.workspace_bytes != "0";
  if (has_workspace != passes(SlotKind::workspace)) {
    refuse(kernel_name_, "workspace_bytes",
           has_workspace ? "the parameter \"workspace\", which tells the entry where it is"
                         : "a size for the parameter \"workspace\"",
           "none");
  }
  if (launch.clears_workspace && !has_workspace)
    refuse(kernel_name_, "launch.clears_workspace", "a workspace", "none");
}

void LaunchRule::require_all_operands() const {
  for (const int operand : tensors()) {
    if (passes_address(operand)) continue;
    const std::string name = operand_name(operand, scope_);
    refuse(kernel_name_, "launch.parameters", "the address or a map of " + name, "none",
           "add \"" + name + "\"");
  }
  if (!kernel_.epilogue) return;
  for (std::size_t index = 0; index < kernel_.epilogue->operands.size(); ++index) {
    const EpilogueOperandRule& rule = kernel_.epilogue->operands[index];
    const int operand = first_of_epilogue + static_cast<int>(index);
    const bool is_passed = std::ranges::any_of(slots_, [&](const Slot& slot) {
      return slot.kind == SlotKind::number && slot.operand == operand;
    });
    if (!rule.is_number || is_passed) continue;
    refuse(kernel_name_, "launch.parameters", "the number " + rule.name + " of the epilogue",
           "none", "add \"" + rule.name + "\"");
  }
}

// A kernel that supports only some extents must declare a function that checks them.
void LaunchRule::require_all_extents() const {
  for (const auto& [extent, quantity] :
       {std::pair{'m', Quantity::m}, {'n', Quantity::n}, {'k', Quantity::k}}) {
    if (kernel_.supports || !is_free_of(quantity)) continue;
    refuse(kernel_name_, "launch.parameters", fmt::format("{}, or a function `supports`", extent),
           "neither", "an entry that is not told an extent serves few of them");
  }
}

void LaunchRule::require_strides() const {
  for (const int operand : tensors()) {
    if (operand >= first_of_epilogue || layout_of(operand) != LayoutRule::any) continue;
    if (passes_stride(operand, Axis::row) && passes_stride(operand, Axis::column)) continue;
    const std::string name = operand_name(operand, scope_);
    refuse(kernel_name_, "launch.parameters",
           fmt::format("{0}.row_stride and {0}.column_stride", name), "not both",
           "or declare its layout row or column");
  }
}

// --- what the recipe passes ---------------------------------------------------------------------

bool LaunchRule::passes(SlotKind kind) const {
  return std::ranges::any_of(slots_, [&](const Slot& slot) { return slot.kind == kind; });
}

bool LaunchRule::passes_address(int operand) const {
  return std::ranges::any_of(slots_, [&](const Slot& slot) {
    return slot.operand == operand &&
           (slot.kind == SlotKind::pointer || slot.kind == SlotKind::tensor_map);
  });
}

bool LaunchRule::passes_stride(int operand, Axis axis) const {
  return std::ranges::any_of(slots_, [&](const Slot& slot) {
    if (slot.operand != operand) return false;
    if (slot.kind == SlotKind::stride) return slot.axis == axis;
    return slot.kind == SlotKind::tensor_map && (axis != Axis::batch || slot.has_batches);
  });
}

bool LaunchRule::passes_extent(char extent) const {
  return std::ranges::any_of(slots_, [&](const Slot& slot) {
    return slot.kind == SlotKind::extent && slot.extent == extent;
  });
}

// True if nothing in the launch depends on the extent.
bool LaunchRule::is_free_of(Quantity quantity) const {
  const char extent = quantity == Quantity::m   ? 'm'
                      : quantity == Quantity::n ? 'n'
                      : quantity == Quantity::k ? 'k'
                                                : 'l';
  if (passes_extent(extent)) return false;
  if (quantity == Quantity::k) return true;  // the loop over k does not depend on the grid
  if (kernel_.launch.grid_function) return false;
  return std::ranges::none_of(grid_,
                              [&](const Factors& factors) { return factors.mentions(quantity); });
}

std::vector<int> LaunchRule::tensors() const {
  std::vector<int> operands{operand_a, operand_b, operand_out};
  if (kernel_.operands.has_c) operands.push_back(operand_c);
  if (!kernel_.epilogue) return operands;
  for (std::size_t index = 0; index < kernel_.epilogue->operands.size(); ++index) {
    if (!kernel_.epilogue->operands[index].is_number)
      operands.push_back(first_of_epilogue + static_cast<int>(index));
  }
  return operands;
}

LayoutRule LaunchRule::layout_of(int operand) const {
  if (operand < first_of_epilogue) return rule_of(operand, kernel_.operands).layout;
  const auto index = static_cast<std::size_t>(operand - first_of_epilogue);
  switch (kernel_.epilogue->operands[index].adjacent) {
    case Adjacent::along_n:
      return LayoutRule::row;
    case Adjacent::along_m:
      return LayoutRule::column;
    case Adjacent::none:
      break;
  }
  return LayoutRule::any;
}

// --- a problem ----------------------------------------------------------------------------------

Status LaunchRule::check(const Query& query) const {
  const GemmProblem& problem = query.problem;
  if (runtime::is_empty_output(problem)) return Status::success();
  if (query.arguments != nullptr) {
    if (Status status = check_numbers(*query.arguments); !status) return status;
  }
  if (problem.l != 1 && is_free_of(Quantity::l)) {
    return Status::fail(fmt::format("L: expected 1 (the launch takes no l), got {}", problem.l));
  }
  for (const int operand : tensors()) {
    if (Status status = check_packed(operand, problem); !status) return status;
  }
  if (Status status = check_widths(problem); !status) return status;
  return check_launch(query);
}

Status LaunchRule::check_numbers(const GemmArguments& arguments) const {
  if (kernel_.epilogue) return Status::success();
  if (!passes(SlotKind::alpha) && arguments.alpha() != 1) {
    return Status::fail(
        fmt::format("alpha: expected 1 (the launch takes no alpha), got {}", arguments.alpha()));
  }
  if (kernel_.operands.has_c && !passes(SlotKind::beta) && arguments.beta() != 1) {
    return Status::fail(
        fmt::format("beta: expected 1 (the launch takes no beta), got {}", arguments.beta()));
  }
  if (arguments.alpha() == 0 && !passes_extent('k')) {
    return Status::fail(
        "alpha: expected not 0, with which A and B are not read (the launch takes no k that could "
        "be 0), got 0");
  }
  return Status::success();
}

LaunchRule::Placed LaunchRule::placed(int operand, const GemmProblem& problem) const {
  Placed placed{matrix_of(operand, problem), problem.m, problem.n};
  if (operand == operand_a) placed.columns = problem.k;
  if (operand == operand_b) placed.rows = problem.k;
  if (operand < first_of_epilogue) return placed;
  const EpilogueOperandRule& rule =
      kernel_.epilogue->operands[static_cast<std::size_t>(operand - first_of_epilogue)];
  if (!rule.varies_m) placed.rows = 1;
  if (!rule.varies_n) placed.columns = 1;
  return placed;
}

// If the entry does not take a stride, it must be that of packed memory.
Status LaunchRule::check_packed(int operand, const GemmProblem& problem) const {
  const Placed at = placed(operand, problem);
  const bool is_column = layout_of(operand) == LayoutRule::column;
  const auto check = [&](Axis axis, std::string_view what, std::int64_t extent,
                         std::int64_t packed) {
    const std::int64_t stride = stride_of(at.matrix, axis);
    if (extent <= 1 || stride == packed || passes_stride(operand, axis)) return Status::success();
    return Status::fail(
        fmt::format("{0}: expected a {1} stride of {2} (the launch takes no {0}.{1}"
                    "_stride), got {3}",
                    operand_name(operand, scope_), what, packed, stride));
  };
  if (at.rows == 0 || at.columns == 0) return Status::success();
  if (Status status = check(Axis::row, "row", at.rows, is_column ? 1 : at.columns); !status)
    return status;
  if (Status status = check(Axis::column, "column", at.columns, is_column ? at.rows : 1); !status)
    return status;
  const bool varies =
      operand < first_of_epilogue ||
      kernel_.epilogue->operands[static_cast<std::size_t>(operand - first_of_epilogue)].varies_l;
  return check(Axis::batch, "batch", problem.l, varies ? at.rows * at.columns : 0);
}

Status LaunchRule::check_widths(const GemmProblem& problem) const {
  for (const Slot& slot : slots_) {
    if (slot.kind != SlotKind::stride) continue;
    const std::int64_t stride = stride_of(matrix_of(slot.operand, problem), slot.axis);
    if (holds(slot.type, stride)) continue;
    return Status::fail(fmt::format("{}: expected a stride that its parameter's type holds, got {}",
                                    operand_name(slot.operand, scope_), stride));
  }
  for (const Slot& slot : slots_) {
    if (slot.kind != SlotKind::tensor_map) continue;
    const MatrixType& matrix = matrix_of(slot.operand, problem);
    const std::string name = operand_name(slot.operand, scope_);
    if (problem.l != 1 && !slot.has_batches)
      return Status::fail(
          fmt::format("L: expected 1 ({}'s map has two dimensions), got {}", name, problem.l));
    for (const Axis axis : {Axis::batch, Axis::row, Axis::column}) {
      if (stride_of(matrix, axis) >= 0) continue;
      return Status::fail(fmt::format("{}: expected strides that a tensor map can have, got {}",
                                      name, stride_of(matrix, axis)));
    }
  }
  return Status::success();
}

Status LaunchRule::check_launch(const Query& query) const {
  const LaunchRecipe& launch = kernel_.launch;
  if (launch.shared_bytes > query.device.shared_bytes_per_block) {
    return Status::fail(
        fmt::format("shared memory: expected at most {} bytes a block on {}, got {}",
                    query.device.shared_bytes_per_block, query.device.name, launch.shared_bytes));
  }
  std::optional<Blocks> grid;
  try {
    grid = blocks(query.problem, query.device, query.device.multiprocessors);
  } catch (...) {
    return Status::fail("launch.grid_function threw: " + caught_text());
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::string_view name = std::string_view("xyz").substr(axis, 1);
    if (!grid || (*grid)[axis] < 1 || (*grid)[axis] > most_blocks[axis]) {
      return Status::fail(fmt::format("grid: expected 1 to {} blocks along {}, got {}",
                                      most_blocks[axis], name,
                                      grid ? std::to_string((*grid)[axis]) : "more"));
    }
    if ((*grid)[axis] % launch.cluster[axis] == 0) continue;
    return Status::fail(
        fmt::format("grid: expected a multiple of the cluster's {} along {}, got {}",
                    launch.cluster[axis], name, (*grid)[axis]));
  }
  return Status::success();
}

// At least one block in each direction, since K may be 0.
std::optional<LaunchRule::Blocks> LaunchRule::blocks(const GemmProblem& problem,
                                                     const DeviceInfo& device,
                                                     std::int64_t multiprocessors) const {
  Blocks result{};
  if (kernel_.launch.grid_function) {
    std::ranges::copy(kernel_.launch.grid_function(problem, device), result.begin());
    return result;
  }
  for (std::size_t axis = 0; axis < result.size(); ++axis) {
    const auto count = grid_[axis].evaluate({problem, multiprocessors});
    if (!count) return std::nullopt;
    result[axis] = std::max<std::int64_t>(*count, 1);
  }
  return result;
}

runtime::EntryParameters LaunchRule::parameters() const {
  runtime::EntryParameters parameters;
  for (const Slot& slot : slots_)
    parameters.push_back(static_cast<std::uint32_t>(size_of(slot.type)));
  return parameters;
}

std::string LaunchRule::text() const {
  const LaunchRecipe& launch = kernel_.launch;
  return fmt::format("{} ({}) <{}> [{}] {{{}}} {} {} {}", launch.entry,
                     fmt::join(launch.parameters, ", "), fmt::join(launch.grid, ", "),
                     fmt::join(launch.block, ", "), fmt::join(launch.cluster, ", "),
                     launch.shared_bytes, launch.clears_workspace, kernel_.workspace_bytes);
}

}  // namespace gemmery::user
