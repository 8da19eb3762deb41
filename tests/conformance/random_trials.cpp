// SPDX-License-Identifier: Apache-2.0
// Draws trials for a kernel.
#include "tests/conformance/random_trials.hpp"

#include <gemmery/family.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "emulator/device.hpp"
#include "operation/groups.hpp"
#include "operation/matrix.hpp"
#include "tests/conformance/random_convolutions.hpp"

namespace gemmery::conformance {
namespace {

using operation::MatrixExtents;

// --- extents ---

// Extents near the sizes of vectors, fragments and tiles.
constexpr std::array<std::int64_t, 28> edges{1,  2,  3,  4,   5,   6,   7,   8,  9,  12,
                                             15, 16, 17, 24,  31,  32,  33,  40, 47, 63,
                                             64, 65, 96, 127, 128, 129, 255, 257};

// The numbers of a design field such as "128x64x16".
std::vector<std::int64_t> tile_numbers(const Metadata& metadata) {
  std::vector<std::int64_t> numbers;
  const std::string_view text = metadata.design_value("tile");
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::int64_t number = 0;
    const auto [end, failure] =
        std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (failure != std::errc{}) continue;
    numbers.push_back(std::clamp<std::int64_t>(number, 1, 512));
    at = static_cast<std::size_t>(end - text.data());
  }
  return numbers;
}

std::int64_t draw_extent(Choices& choices, std::int64_t tile) {
  if (choices.percent(2)) return 0;
  if (tile > 0 && choices.percent(30))
    return std::max<std::int64_t>(tile + choices.between(-1, 1), 1);
  if (tile > 0 && choices.percent(10)) return 2 * tile + choices.between(-1, 1);
  if (choices.percent(30)) return choices.between(1, 40);
  return choices.one_of(edges);
}

std::int64_t draw_depth(Choices& choices, std::int64_t tile) {
  if (choices.percent(4)) return 0;
  if (choices.percent(2)) return choices.between(1000, 4200);
  return draw_extent(choices, tile);
}

std::int64_t draw_batches(Choices& choices) {
  if (choices.percent(1)) return 0;
  return choices.percent(65) ? 1 : choices.one_of({2, 3, 5});
}

// Larger than every tile, so that there are several blocks or threads.
std::int64_t draw_large_extent(Choices& choices) { return choices.between(150, 700); }

// For a design with few rows of m or n ("m4"): as many or fewer; rarely more, which are refused.
void draw_few(const Metadata& metadata, Choices& choices, GemmProblem& problem) {
  const std::string_view rows = metadata.design_value("rows");
  if (rows.size() != 2 || choices.percent(4)) return;
  std::int64_t& few = rows[0] == 'm' ? problem.m : problem.n;
  few = choices.percent(2) ? 0 : choices.between(1, rows[1] - '0');
}

void draw_extents(const Metadata& metadata, Choices& choices, const TrialLimits& limits,
                  GemmProblem& problem) {
  std::vector<std::int64_t> tile = tile_numbers(metadata);
  tile.resize(3);
  problem.m = draw_extent(choices, tile[0]);
  problem.n = draw_extent(choices, tile[1]);
  problem.k = std::min(draw_depth(choices, tile[2]), limits.depth);
  problem.l = draw_batches(choices);
  if (limits.products >= 1 << 22 && choices.percent(50)) {
    for (std::int64_t* const extent : {&problem.m, &problem.n, &problem.k})
      *extent = draw_large_extent(choices);
  }
  draw_few(metadata, choices, problem);
  const std::array extents{&problem.m, &problem.n, &problem.k, &problem.l};
  while (problem.flops() > 2.0 * static_cast<double>(limits.products))
    **std::ranges::max_element(extents, {}, [](const std::int64_t* extent) { return *extent; }) /=
        2;
}

// --- memory ---

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

enum class Role : std::uint8_t { input, output };

// Kernels of sm90 declare it; in other families any operand may be an array of pointers if the
// family supports them.
bool takes_pointers(const Kernel& kernel) {
  const Metadata metadata = kernel.metadata();
  const bool is_told = metadata.design_value("instruction") == "wgmma";
  return kernel.family().takes_pointers() &&
         (!is_told || metadata.design_value("batches") == "pointers");
}

// The least number of elements that are a multiple of a rule's alignment.
std::int64_t aligned_elements(const OperandRule& rule) {
  const auto width = static_cast<std::int64_t>(byte_width(rule.dtype));
  return std::max<std::int64_t>(rule.alignment / width, 1) * whole_elements(rule.dtype);
}

// Draws strides in elements for one operand that satisfy its rule, or pointers to its matrices.
class MatrixDraw {
 public:
  MatrixDraw(const Kernel& kernel, const OperandRule& rule, MatrixExtents extents, Role role,
             Choices& choices)
      : rule_(rule),
        extents_(extents),
        role_(role),
        choices_(choices),
        may_have_pointers_(takes_pointers(kernel)) {
    unit_ = aligned_elements(rule);
  }

  MatrixType draw() {
    MatrixType matrix{.dtype = rule_.dtype};
    draw_matrix_strides(matrix);
    draw_batch_stride(matrix);
    flip_signs(matrix);
    matrix = operation::normalize(matrix, extents_);
    matrix.alignment = draw_alignment(matrix);
    return matrix;
  }

 private:
  std::int64_t padding() { return choices_.percent(50) ? 0 : choices_.between(1, 9); }
  bool is_input() const { return role_ == Role::input; }

  Layout draw_layout() {
    if (rule_.layout == LayoutRule::row) return Layout::row;
    if (rule_.layout == LayoutRule::column) return Layout::column;
    return choices_.one_of(
        {Layout::row, Layout::row, Layout::column, Layout::column, Layout::strided});
  }

  void draw_matrix_strides(MatrixType& matrix) {
    const Layout layout = draw_layout();
    const bool is_row =
        layout == Layout::row || (layout == Layout::strided && choices_.percent(50));
    std::int64_t& minor = is_row ? matrix.column_stride : matrix.row_stride;
    std::int64_t& major = is_row ? matrix.row_stride : matrix.column_stride;
    minor = layout == Layout::strided ? round_up(choices_.between(2, 4), unit_) : 1;
    const std::int64_t length =
        std::max<std::int64_t>(is_row ? extents_.columns : extents_.rows, 1);
    major = round_up(length * minor + padding(), unit_);
    if (is_input() && choices_.percent(3)) major = 0;
    if (is_input() && layout == Layout::strided && choices_.percent(10)) minor = 0;
  }

  void draw_batch_stride(MatrixType& matrix) {
    const std::int64_t span = std::max<std::int64_t>(extents_.rows, 1) * matrix.row_stride +
                              std::max<std::int64_t>(extents_.columns, 1) * matrix.column_stride;
    matrix.batch_stride = round_up(span + padding(), unit_);
    if (is_input() && choices_.percent(25)) matrix.batch_stride = 0;
    const int chance = extents_.batch > 1 ? 30 : 5;
    if (may_have_pointers_ && choices_.percent(chance)) matrix.batch_stride = by_pointers;
  }

  // Not the stride of 1 in a fixed layout.
  void flip_signs(MatrixType& matrix) {
    for (std::int64_t* const stride :
         {&matrix.batch_stride, &matrix.row_stride, &matrix.column_stride}) {
      if (*stride != 1 && *stride != by_pointers && choices_.percent(10)) *stride = -*stride;
    }
    if (rule_.layout == LayoutRule::any && choices_.percent(4)) {
      for (std::int64_t* const stride : {&matrix.row_stride, &matrix.column_stride})
        if (*stride == 1 && unit_ == 1) *stride = -1;
    }
  }

  std::uint8_t draw_alignment(const MatrixType& matrix) {
    const std::uint8_t natural = operation::alignment_of(0, matrix);
    if (extents_.batch == 0 || extents_.rows == 0 || extents_.columns == 0) return natural;
    auto alignment =
        static_cast<std::uint8_t>(std::max<std::size_t>(rule_.alignment, byte_width(rule_.dtype)));
    while (alignment < natural && choices_.percent(50))
      alignment = static_cast<std::uint8_t>(alignment * 2);
    return std::min(alignment, natural);
  }

  const OperandRule& rule_;
  MatrixExtents extents_;
  Role role_;
  Choices& choices_;
  bool may_have_pointers_;
  std::int64_t unit_ = 1;
};

// C as a broadcast row, column or number, if its rule allows that.
MatrixType broadcast_some(MatrixType matrix, const MatrixExtents& extents, const OperandRule& rule,
                          Choices& choices) {
  const auto drop = [&](std::int64_t& stride) { stride = 0; };
  if (rule.layout == LayoutRule::any || rule.layout == LayoutRule::row) {
    if (choices.percent(20)) drop(matrix.row_stride);
  }
  if (rule.layout == LayoutRule::any || rule.layout == LayoutRule::column) {
    if (choices.percent(20)) drop(matrix.column_stride);
  }
  matrix = operation::normalize(matrix, extents);
  const bool is_empty = extents.batch == 0 || extents.rows == 0 || extents.columns == 0;
  if (is_empty) matrix.alignment = operation::alignment_of(0, matrix);
  return matrix;
}

bool can_be_in_place(const OperandRules& rules, const MatrixType& out) {
  const bool same_layout = rules.c.layout == rules.out.layout || rules.c.layout == LayoutRule::any;
  return rules.c.dtype == rules.out.dtype && same_layout && out.alignment >= rules.c.alignment;
}

// --- numbers ---

double draw_alpha(Choices& choices) {
  if (choices.percent(50)) return 1;
  if (choices.percent(15)) return 0;
  return choices.percent(25) ? choices.normal() : choices.one_of({-1.0, 0.5, 2.0, -0.25, 3.0});
}

double draw_beta(Choices& choices) {
  if (choices.percent(15)) return 0;
  if (choices.percent(20)) return choices.normal() + 3;
  return choices.one_of({1.0, 1.0, -1.0, 0.5, 2.0, 0.25});
}

Fill draw_fill(Choices& choices) {
  return choices.one_of(
      {Fill::integers, Fill::integers, Fill::normal, Fill::normal, Fill::uniform});
}

// In one of eight trials A and B have the worst values for some arithmetic. A fill of integers
// stays exact.
void draw_pattern(Choices& choices, api::Trial& trial) {
  using enum api::Pattern;
  if (!choices.percent(12)) return;
  trial.pattern = choices.one_of({lowest, highest, alternating, one_huge, subnormal});
  const bool has_ends = trial.pattern != one_huge && trial.pattern != subnormal;
  trial.options.fill = has_ends ? Fill::integers : Fill::normal;
}

}  // namespace

namespace {

// --- groups ---

std::int64_t draw_group_count(Choices& choices) {
  if (choices.percent(3)) return 0;
  if (choices.percent(10)) return choices.between(100, 300);
  return choices.percent(20) ? 1 : choices.between(2, 12);
}

// The extents are set later, by draw_indexed_extent.
IndexedElements draw_indexed(Choices& choices) {
  return {.bits = static_cast<std::uint8_t>(choices.percent(40) ? 64 : 32)};
}

// As many elements as the groups have, more, fewer, or none.
void draw_indexed_extent(Choices& choices, std::int64_t elements, IndexedElements& indexed) {
  if (!indexed.are_used()) return;
  indexed.extent = choices.percent(30)  ? elements
                   : choices.percent(3) ? 0
                                        : choices.between(1, 2 * elements + 3);
}

Groups draw_any_form(Choices& choices) {
  using enum GroupSizes;
  Groups groups{.sizes = choices.one_of({ends, ends, prefix, counts, labels, masked, list}),
                .ragged = choices.one_of({Ragged::m, Ragged::m, Ragged::n, Ragged::k})};
  if (groups.sizes == list) return {.sizes = list, .are_on_host = true};
  if (groups.sizes == labels && groups.ragged == Ragged::k) groups.ragged = Ragged::m;
  groups.index_bits = choices.percent(40) ? 64 : 32;
  groups.are_on_host = choices.percent(20);
  if (choices.percent(30)) groups.outside = OutsideGroups::zero;
  if (groups.share_tensors()) groups.alignment = choices.one_of({1, 1, 1, 2, 8, 16, 128});
  if (choices.percent(20)) groups.expected = choices.between(1, 300);
  if (groups.share_tensors() && groups.ragged != Ragged::k) {
    if (choices.percent(35)) groups.gather = draw_indexed(choices);
    if (choices.percent(35)) groups.scatter = draw_indexed(choices);
    if (groups.gather.are_used() && choices.percent(30))
      groups.gather.divide = static_cast<std::int32_t>(choices.between(1, 8));
    if (groups.scatter.are_used()) groups.outside = OutsideGroups::untouched;
  }
  return groups;
}

// Kernels that find groups find rows or columns by indices, or neither; others take all forms.
bool takes(const Kernel& kernel, const Groups& groups) {
  const Family& family = kernel.family();
  if (!family.takes_groups(groups)) return false;
  if (groups.have_indices() && !family.takes_indices(groups)) return false;
  const Metadata metadata = kernel.metadata();
  if (metadata.design_value("groups").empty()) return true;
  if (groups.sizes == GroupSizes::labels && metadata.design_value("schedule") == "persistent")
    return false;
  const bool has_list = metadata.design_value("groups") == "a list of the host";
  if (has_list != (groups.sizes == GroupSizes::list)) return false;
  const bool has_table = has_list || metadata.design_value("groups") == "in a table of the host";
  if (has_table != groups.are_on_host) return false;
  // simt determines at run time how to treat elements of no group.
  const bool has_zeros = groups.outside == OutsideGroups::zero && groups.ragged != Ragged::k;
  if (family.name() != "simt" && has_zeros != (metadata.design_value("outside") == "zero"))
    return false;
  const std::string_view indexed = !groups.have_indices()       ? ""
                                   : groups.ragged == Ragged::n ? "columns"
                                                                : "rows";
  if (metadata.design_value("indices") != indexed) return false;
  // sm90 has separate kernels for rows and columns by index.
  const std::string_view of = metadata.design_value("indexed");
  return of.empty() || (groups.gather.are_used() == of.starts_with("operand") &&
                        groups.scatter.are_used() == of.ends_with("out"));
}

// A form that the kernel's family accepts, if one is found in a few tries.
Groups draw_form(const Kernel& kernel, Choices& choices) {
  Groups groups = draw_any_form(choices);
  for (int tries = 0; tries < 1000 && !takes(kernel, groups); ++tries)
    groups = draw_any_form(choices);
  const std::string where(kernel.metadata().design_value("groups"));
  // Kernels read only the label of a tile's first row.
  if (!where.empty() && groups.sizes == GroupSizes::labels && choices.percent(90))
    groups.alignment = choices.one_of({32, 64, 128});
  if (!where.empty() && groups.sizes != GroupSizes::list && choices.percent(90))
    groups.are_on_host = where == "in a table of the host";
  return groups;
}

// Few elements per group along the extent that differs, or many for few groups.
void draw_groups(const Kernel& kernel, Choices& choices, const TrialLimits& limits,
                 GemmProblem& problem) {
  problem.groups = draw_form(kernel, choices);
  const OperandRules& rules = kernel.operands();
  if (problem.groups->share_tensors())  // groups begin with a byte
    problem.groups->alignment = static_cast<std::int32_t>(
        round_up(problem.groups->alignment,
                 std::max(whole_elements(rules.a.dtype), whole_elements(rules.b.dtype))));
  problem.l = draw_group_count(choices);
  const bool is_list = problem.groups->sizes == GroupSizes::list;
  if (is_list) problem.l = std::max<std::int64_t>(problem.l, 1);
  if (is_list && kernel.metadata().design_value("groups") == "a list of the host")
    problem.l = std::min<std::int64_t>(problem.l, choices.one_of({48, 48, 64, 65}));
  std::int64_t& ragged = problem.groups->ragged == Ragged::m   ? problem.m
                         : problem.groups->ragged == Ragged::n ? problem.n
                                                               : problem.k;
  if (problem.groups->share_tensors() && choices.percent(70))
    ragged = choices.between(0, 1 + 4 * std::min<std::int64_t>(problem.l, 100)) +
             choices.one_of({0, 0, 1, 64, 129, 257});
  std::array extents{&problem.m, &problem.n, &problem.k};
  while (problem.flops() > 2.0 * static_cast<double>(limits.products))
    **std::ranges::max_element(extents, {}, [](const std::int64_t* extent) { return *extent; }) /=
        2;
  draw_indexed_extent(choices, operation::ragged_extent(problem), problem.groups->gather);
  draw_indexed_extent(choices, operation::ragged_extent(problem), problem.groups->scatter);
}

// Matrices of a list have one layout; lines are packed, or at multiples of the rule's alignment.
MatrixType draw_listed(const OperandRule& rule, const MatrixExtents& extents, Choices& choices) {
  const Layout layout = rule.layout == LayoutRule::row      ? Layout::row
                        : rule.layout == LayoutRule::column ? Layout::column
                        : choices.percent(50)               ? Layout::row
                                                            : Layout::column;
  MatrixType matrix = operation::packed_matrix(rule.dtype, layout, extents);
  std::int64_t& line = layout == Layout::row ? matrix.row_stride : matrix.column_stride;
  if (line > 0) line = round_up(line, aligned_elements(rule));
  matrix.batch_stride = by_pointers;
  matrix = operation::normalize(matrix, extents);
  matrix.alignment = operation::alignment_of(0, matrix);
  return matrix;
}

MatrixType draw_matrix(const Kernel& kernel, const OperandRule& rule, const GemmProblem& problem,
                       const MatrixExtents& extents, Role role, Choices& choices) {
  if (problem.groups && problem.groups->sizes == GroupSizes::list)
    return draw_listed(rule, extents, choices);
  MatrixType matrix = MatrixDraw(kernel, rule, extents, role, choices).draw();
  // Groups share one tensor.
  if (problem.groups && problem.groups->share_tensors() && extents.batch == 1 &&
      matrix.has_pointers()) {
    matrix.batch_stride = 0;
    matrix.alignment = std::min(matrix.alignment, operation::alignment_of(0, matrix));
  }
  return matrix;
}

// C, or one per group: a matrix, a row, a column or a number.
MatrixType draw_addend(const Kernel& kernel, const GemmProblem& problem, Choices& choices) {
  const OperandRule& rule = kernel.operands().c;
  const MatrixExtents extents = operation::product_extents(problem).out;
  const MatrixType full = draw_matrix(kernel, rule, problem, extents, Role::input, choices);
  const bool is_list = problem.groups && problem.groups->sizes == GroupSizes::list;
  if (is_list) return full;
  if (!operation::is_out_shared(problem) || problem.l < 2 || rule.layout != LayoutRule::any ||
      !choices.percent(30))
    return broadcast_some(full, extents, rule, choices);
  const bool is_of_m = problem.groups->ragged == Ragged::m;
  const MatrixExtents own{problem.l, is_of_m ? 1 : extents.rows, is_of_m ? extents.columns : 1};
  MatrixType matrix = operation::packed_matrix(rule.dtype, Layout::row, own);
  matrix = operation::normalize(matrix, {problem.l, extents.rows, extents.columns});
  matrix.alignment = operation::alignment_of(0, matrix);
  return matrix;
}

void draw_product(const Kernel& kernel, Choices& choices, const TrialLimits& limits,
                  GemmProblem& problem) {
  const OperandRules& rules = kernel.operands();
  draw_extents(kernel.metadata(), choices, limits, problem);
  const bool is_of_groups = !kernel.metadata().design_value("groups").empty();
  if (limits.groups || is_of_groups) draw_groups(kernel, choices, limits, problem);
  const operation::ProductExtents extents = operation::product_extents(problem);
  problem.a = draw_matrix(kernel, rules.a, problem, extents.a, Role::input, choices);
  problem.b = draw_matrix(kernel, rules.b, problem, extents.b, Role::input, choices);
  problem.out = draw_matrix(kernel, rules.out, problem, extents.out, Role::output, choices);
  problem.accumulator = rules.accumulator;
  problem.math = rules.math;
}

bool is_of_convolutions(const Kernel& kernel) {
  return !kernel.metadata().design_value("convolution").empty();
}

}  // namespace

namespace {

// --- scales ---

// The k of a kernel's blocks are multiples of this: sm90 says it in "32-both".
std::int64_t k_of_scales(const Kernel& kernel) {
  std::int64_t k = 32;
  const Metadata metadata = kernel.metadata();
  const std::string_view text = metadata.design_value("scales");
  std::from_chars(text.data(), text.data() + text.size(), k);
  return k;
}

// Blocks that all rows share suit every kernel, smaller ones those that read a scale for each row.
std::string draw_scale(const CompanionRule& rule, std::int64_t k, bool is_of_a, bool is_for_rows,
                       Choices& choices) {
  const std::string type(alias(rule.dtype()));
  const std::int64_t block = k * choices.one_of({1, 1, 2, 3});
  if (rule.layout() == ScaleLayout::swizzled_128x4)
    return fmt::format("{}[1x{}]:swizzled", type, block);
  const std::string rows = is_for_rows ? std::to_string(choices.one_of({1, 1, 3, 128})) : "all";
  const char* const along = !choices.percent(50) ? "" : is_of_a ? ":m" : ":n";
  return fmt::format("{}[{}x{}]{}", type, rows, block, along);
}

// A scale of codes is one of their own rows.
bool has_scales_of_rows(const Metadata& metadata) {
  const std::string_view vectors = metadata.design_value("scales");
  return vectors.empty() || vectors.ends_with("both") || !metadata.design_value("decoded").empty();
}

std::string draw_scales(const Kernel& kernel, bool is_of_a, Choices& choices) {
  const OperandRules& rules = kernel.operands();
  const CompanionRules& own = is_of_a ? rules.a_companions : rules.b_companions;
  const bool has_rows = has_scales_of_rows(kernel.metadata());
  std::string text;
  for (const CompanionRule& rule : own.scales)
    if (rule.is_used())
      text += (text.empty() ? (is_of_a ? " scale_a=" : " scale_b=") : "*") +
              draw_scale(rule, k_of_scales(kernel), is_of_a, has_rows, choices);
  if (own.zero_point.is_used())
    text += (is_of_a ? " zero_a=" : " zero_b=") +
            draw_scale(own.zero_point, k_of_scales(kernel), is_of_a, has_rows, choices);
  return text;
}

// The same problem with scales for the kernel, if it reads any.
GemmProblem with_scales(const Kernel& kernel, const GemmProblem& problem, Choices& choices) {
  const OperandRules& rules = kernel.operands();
  if (!rules.a_companions.are_used() && !rules.b_companions.are_used()) return problem;
  return parse_problem(to_string(ProblemLine{.problem = problem}) +
                       draw_scales(kernel, true, choices) + draw_scales(kernel, false, choices))
      .problem;
}

}  // namespace

api::Trial random_trial(const Kernel& kernel, Choices& choices, const TrialLimits& limits) {
  const OperandRules& rules = kernel.operands();
  api::Trial trial;
  GemmProblem& problem = trial.line.problem;
  if (is_of_convolutions(kernel)) {
    problem = random_convolution(kernel, choices);
  } else {
    draw_product(kernel, choices, limits, problem);
  }
  problem = with_scales(kernel, problem, choices);
  problem.epilogue = kernel.epilogue();
  trial.line.alpha = draw_alpha(choices);
  if (rules.has_c) {
    trial.line.beta = draw_beta(choices);
    trial.in_place = can_be_in_place(rules, problem.out) && choices.percent(25);
    const MatrixType addend =
        problem.convolution ? *problem.c : draw_addend(kernel, problem, choices);
    problem.c = trial.in_place ? problem.out : addend;
  }
  trial.nan_inputs = trial.line.alpha == 0 && choices.percent(60);
  trial.options = {.fill = draw_fill(choices), .seed = choices.bits() | 1, .device = limits.device};
  draw_pattern(choices, trial);
  const bool has_range = bit_width(rules.a.dtype) >= 16 && bit_width(rules.b.dtype) >= 16;
  if (rules.out.dtype == DType::float16 && has_range && trial.pattern == api::Pattern::random &&
      choices.percent(10))
    trial.scale = 200;  // sums exceed 65504
  if (choices.percent(5)) trial.repeats = 2;
  // Few multiprocessors, so that blocks have several tiles.
  if (!limits.device.is_cpu() && choices.percent(25))
    trial.max_multiprocessors = static_cast<int>(choices.between(1, 3));
  // The emulator detects every access beyond an allocation; without guard bands the allocation ends
  // with the operand.
  if (limits.device.type == DeviceType::emulated) trial.options.guard_bands = choices.percent(50);
  return trial;
}

std::string replay_words(const api::Trial& trial, const Kernel& kernel) {
  constexpr std::array<std::string_view, 3> fills{"normal", "uniform", "integers"};
  std::string words = fmt::format("--replay '{}' --kernel '{}' --seed {} --fill {}",
                                  to_string(trial.line), kernel.name(), trial.options.seed,
                                  fills[static_cast<std::size_t>(trial.options.fill)]);
  if (trial.in_place) words += " --in-place";
  if (trial.nan_inputs) words += " --nan-inputs";
  if (trial.pattern != api::Pattern::random)
    words += fmt::format(" --pattern {}", static_cast<int>(trial.pattern));
  if (trial.scale != 1) words += fmt::format(" --scale {}", trial.scale);
  if (!trial.options.guard_bands) words += " --no-guard-bands";
  if (trial.repeats != 1) words += fmt::format(" --repeats {}", trial.repeats);
  if (trial.max_multiprocessors != 0)
    words += fmt::format(" --multiprocessors {}", trial.max_multiprocessors);
  if (!trial.options.device.is_cpu())
    words += fmt::format(" --device {}", to_string(trial.options.device));
  if (trial.options.device.type == DeviceType::emulated)
    words += fmt::format(" --schedule {}", emulator::schedule_seed());
  return words;
}

}  // namespace gemmery::conformance
