// SPDX-License-Identifier: Apache-2.0
// Kernels of the CPU as values: names, rules, artifacts without code.
#include "providers/host/host_family.hpp"

#include <algorithm>
#include <array>

#include <gemmery/error.hpp>

#include "kernel/codeless.hpp"
#include "kernel/epilogue.hpp"
#include "kernel/operand_programs.hpp"
#include "kernel/rules.hpp"
#include "operation/pointed_memory.hpp"
#include "platform/float_mode.hpp"
#include "platform/host_info.hpp"
#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

// A host kernel has no design: the CPU decides. An empty struct would have a byte of unspecified
// value.
struct NoDesign {
  std::uint8_t nothing = 0;
};

constexpr std::array narrow_floats{DType::float32,       DType::float16,      DType::bfloat16,
                                   DType::float8_e4m3fn, DType::float8_e5m2,  DType::float6_e2m3fn,
                                   DType::float6_e3m2fn, DType::float4_e2m1fn};
constexpr std::array outputs{DType::float64,  DType::float32,       DType::float16,
                             DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2,
                             DType::int8,     DType::uint8,         DType::int32};

// The types of out that C does not have: only programs store them.
constexpr bool is_packed_output(DType dtype) { return dtype == DType::float4_e2m1fn; }

// Products that only operands with scales or programs have: integers times floats, and integers
// that these turn into floats.
bool is_legal_scaled(const ProductTypes& types) {
  const auto is_byte = [](DType dtype) { return is_integer(dtype) && bit_width(dtype) <= 8; };
  const auto is_narrow = [&](DType dtype) {
    if (dtype == DType::float64) return types.accumulator == DType::float64;
    return is_byte(dtype) || std::ranges::find(narrow_floats, dtype) != narrow_floats.end();
  };
  return (is_byte(types.a) || is_byte(types.b)) && is_narrow(types.a) && is_narrow(types.b) &&
         (types.accumulator == DType::float32 || types.accumulator == DType::float64) &&
         types.math == Math::native;
}

bool is_float8(DType dtype) { return bit_width(dtype) == 8 && is_floating(dtype); }

void append_float_products(std::vector<ProductTypes>& all) {
  for (const DType a : narrow_floats)
    for (const DType b : narrow_floats) {
      for (const DType accumulator : {DType::float32, DType::float64, DType::float16}) {
        const bool is_half = a == DType::float16 && b == DType::float16;
        if (accumulator == DType::float16 && !is_half) continue;
        all.push_back({a, b, accumulator, Math::native});
        if (a == DType::float32 && b == DType::float32)
          for (const Math math : {Math::tf32, Math::tf32x3, Math::bf16x3, Math::f16x3, Math::f16,
                                  Math::bf16, Math::bf16x6, Math::bf16x9})
            all.push_back({a, b, accumulator, math});
        if (is_float8(a) && is_float8(b))
          for (const Math math : {Math::fp8_fast, Math::fp8_promoted})
            all.push_back({a, b, accumulator, math});
      }
    }
  all.push_back({DType::float64, DType::float64, DType::float64, Math::native});
  for (const DType other : narrow_floats) {
    all.push_back({DType::float64, other, DType::float64, Math::native});
    all.push_back({other, DType::float64, DType::float64, Math::native});
  }
}

void append_integer_products(std::vector<ProductTypes>& all) {
  for (const DType a : {DType::int8, DType::uint8})
    for (const DType b : {DType::int8, DType::uint8})
      for (const Math math : {Math::native, Math::saturate})
        all.push_back({a, b, DType::int32, math});
}

ProductTypes products_of(const OperandRules& rules) {
  return {rules.a.dtype, rules.b.dtype, rules.accumulator, rules.math};
}
ProductTypes products_of(const GemmProblem& problem) {
  return {problem.a.dtype, problem.b.dtype, problem.accumulator, problem.math};
}

OperandRule any_of(DType dtype) {
  return {.dtype = dtype, .layout = LayoutRule::any, .alignment = 1};
}

OperandRules make_rules(const ProductTypes& types, DType out, std::optional<DType> c) {
  return {.a = any_of(types.a),
          .b = any_of(types.b),
          .c = c ? any_of(*c) : OperandRule{},
          .out = any_of(out),
          .accumulator = types.accumulator,
          .math = types.math,
          .has_c = c.has_value()};
}

OperandRules with_companions(OperandRules rules, const kernel::CompanionSuffix& companions) {
  rules.a_companions = companions.a;
  rules.b_companions = companions.b;
  rules.programs = companions.programs;
  return rules;
}

// --- artifacts ---

class HostLaunch final : public kernel::CodelessLaunch {
 public:
  HostLaunch(const Kernel& kernel, const GemmArguments& arguments)
      : CodelessLaunch(arguments), kernel_(kernel) {}
  void launch(Stream stream) override {
    kernel_.family().run(kernel_, arguments(), {.stream = stream});
  }

 private:
  Kernel kernel_;
};

class HostArtifact final : public kernel::CodelessArtifact {
 public:
  explicit HostArtifact(const Kernel& kernel) : CodelessArtifact(kernel, Target::cpu()) {}
  void load(Device device) const override {
    if (device.is_cpu()) return;
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = kernel().name(),
                 .expected = "the CPU",
                 .got = to_string(device),
                 .hint = {},
                 .cause = {}});
  }
  PreparedLaunch bind(const GemmArguments& arguments, std::size_t) const override {
    return PreparedLaunch(std::make_unique<HostLaunch>(kernel(), arguments));
  }
};

// --- names ---

// Removes "word_" (or a final "word") from the front of `text`.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = text.find('_');
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// A dtype by its alias only, so that a kernel has one name.
std::optional<DType> take_dtype(std::string_view& text) {
  const std::string_view word = take_word(text);
  const auto found = std::ranges::find(dtype_table, word, &DTypeFacts::alias);
  return found == dtype_table.end() ? std::nullopt : std::optional(found->dtype);
}

// An integer out takes floating-point accumulators only through an epilogue that rounds them.
bool is_reached(DType out, DType accumulator) {
  return is_integer(accumulator) || is_floating(out);
}

bool is_output(std::optional<DType> dtype) {
  return dtype && std::ranges::find(outputs, *dtype) != outputs.end();
}

}  // namespace

const std::vector<ProductTypes>& legal_products() {
  static const auto* const all = [] {
    auto* products = new std::vector<ProductTypes>;
    append_float_products(*products);
    append_integer_products(*products);
    return products;
  }();
  return *all;
}

bool is_legal(const ProductTypes& types) {
  return std::ranges::any_of(legal_products(), [&](const ProductTypes& legal) {
    return legal.a == types.a && legal.b == types.b && legal.accumulator == types.accumulator &&
           legal.math == types.math;
  });
}

Kernel HostFamily::kernel_for(const GemmProblem& problem) const {
  const std::optional<DType> c = problem.c ? std::optional(problem.c->dtype) : std::nullopt;
  const OperandRules rules = with_companions(
      make_rules(products_of(problem), problem.out.dtype, c),
      {kernel::companion_rules(problem.a_companions), kernel::companion_rules(problem.b_companions),
       kernel::operand_programs(problem)});
  return Kernel(*this, rules, DesignBytes::of(NoDesign{}), problem.epilogue);
}

Status HostFamily::serves(const GemmProblem& problem) const {
  if (Status status = availability(); !status) return status;
  if (Status status = serves_types(products_of(problem)); !status) return status;
  return serves_groups_or_shape(problem);
}

Status HostFamily::serves_groups_or_shape(const GemmProblem& problem) const {
  return problem.groups ? serves_shape(one_group(problem)) : serves_shape(problem);
}

void HostFamily::match(const Query& query, std::vector<RankedKernel>& kernels) const {
  if (!query.device.target.is_cpu() || !serves(query.problem)) return;
  kernels.emplace_back(kernel_for(query.problem), predicted_us(query.problem, query.device));
}

void HostFamily::explain(const Query& query, std::vector<Reason>& reasons) const {
  Reason reason{.provider = std::string(provider()), .family = name_};
  if (!query.device.target.is_cpu()) {
    reason.failed =
        "device: expected operands in host memory, got operands on " + query.device.name;
  } else if (const Status status = serves(query.problem); !status) {
    reason.failed = status.error();
    if (availability() && serves_types(products_of(query.problem)))
      reason.nearest.push_back(kernel_for(query.problem));
  } else {
    reason.fitting = 1;
  }
  reasons.push_back(std::move(reason));
}

void HostFamily::enumerate(const std::function<void(const Kernel&)>& visit) const {
  const DesignBytes design = DesignBytes::of(NoDesign{});
  for (const ProductTypes& types : legal_products()) {
    if (!serves_types(types)) continue;
    for (const DType out : outputs) {
      if (!is_reached(out, types.accumulator)) continue;
      visit(Kernel(*this, make_rules(types, out, std::nullopt), design));
      for (const DType c : outputs) visit(Kernel(*this, make_rules(types, out, c), design));
    }
  }
}

std::string HostFamily::kernel_name(const Kernel& kernel) const {
  const OperandRules& rules = kernel.operands();
  std::string text = name_ + "_v" + std::to_string(version());
  const auto append = [&text](std::string_view label, std::string_view value) {
    text += label;
    text += value;
  };
  append("_", alias(rules.a.dtype));
  append("_", alias(rules.b.dtype));
  append("_out_", alias(rules.out.dtype));
  append("_acc_", alias(rules.accumulator));
  append("_c_", rules.has_c ? alias(rules.c.dtype) : "none");
  append("_math_", gemmery::name(rules.math));
  return text + kernel::companion_suffix(rules) + kernel::epilogue_suffix(kernel.epilogue());
}

std::optional<Kernel> HostFamily::parse_name(std::string_view text) const {
  if (!take(text, name_ + "_v" + std::to_string(version()) + "_")) return std::nullopt;
  const auto epilogue = kernel::take_epilogue_suffix(text);
  if (!epilogue) return std::nullopt;
  const auto companions = kernel::take_companion_suffix(text);
  if (!companions) return std::nullopt;
  const auto a = take_dtype(text);
  const auto b = take_dtype(text);
  if (!take(text, "out_")) return std::nullopt;
  const auto out = take_dtype(text);
  if (!take(text, "acc_")) return std::nullopt;
  const auto accumulator = take_dtype(text);
  if (!take(text, "c_")) return std::nullopt;
  const bool has_c = !take(text, "none_");
  const DType c = has_c ? take_dtype(text).value_or(DType::float4_e2m1fn) : DType::float32;
  if (!take(text, "math_")) return std::nullopt;
  const auto math = parse_math(text);
  const bool has_out =
      is_output(out) || (out && is_packed_output(*out) && *epilogue != default_epilogue);
  if (!a || !b || !accumulator || !math || !has_out || (has_c && !is_output(c)))
    return std::nullopt;
  const ProductTypes types{*a, *b, *accumulator, *math};
  const bool may_be_scaled = companions->programs != OperandProgramsId::none ||
                             companions->a.are_used() || companions->b.are_used() ||
                             *epilogue != default_epilogue;
  if (!is_legal(types) && !(may_be_scaled && is_legal_scaled(types))) return std::nullopt;
  if (availability() && !serves_types(types)) return std::nullopt;
  if (has_c && *epilogue != default_epilogue) return std::nullopt;
  if (*epilogue == default_epilogue && !is_reached(*out, *accumulator)) return std::nullopt;
  const OperandRules rules = with_companions(
      make_rules(types, *out, has_c ? std::optional(c) : std::nullopt), *companions);
  return Kernel(*this, rules, DesignBytes::of(NoDesign{}), *epilogue);
}

std::vector<DesignField> HostFamily::design_fields(const Kernel&) const {
  return own_design_fields();
}

std::vector<Target> HostFamily::targets(const Kernel&) const { return {Target::cpu()}; }

const DeviceInfo* HostFamily::device_info(Device device) const {
  return device.is_cpu() ? &platform::host_device_info() : nullptr;
}

Target HostFamily::target_for(const Kernel&, const DeviceInfo&) const { return Target::cpu(); }

Status HostFamily::supports(const Kernel& kernel, const Query& query) const {
  if (Status status = availability(); !status) return status;
  if (Status status = serves_types(products_of(kernel.operands())); !status) return status;
  return serves_groups_or_shape(query.problem);
}

Artifact HostFamily::compile(const Kernel& kernel, Target) const {
  return Artifact(std::make_shared<HostArtifact>(kernel));
}

void HostFamily::run(const Kernel&, const GemmArguments& arguments,
                     const RunOptions& options) const {
  kernel::check_stream(options.stream, Device::cpu());
  operation::check_pointed_memory(arguments);
  const platform::DefaultFloatMode mode;
  if (arguments.group_memory() == nullptr) return multiply(arguments, options.max_multiprocessors);
  const auto multiply_group = [](const void* self, const GemmArguments& group, int threads) {
    const platform::DefaultFloatMode own_mode;  // of this thread
    static_cast<const HostFamily*>(self)->multiply(group, threads);
  };
  run_groups(arguments, {multiply_group, this}, concurrency(), options.max_multiprocessors);
}

}  // namespace gemmery::host
