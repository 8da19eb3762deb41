// SPDX-License-Identifier: Apache-2.0
// A simple gemm on the CPU with a switch for each fault that a real kernel could have.
#include "tests/conformance/mutants.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>

#include "kernel/rules.hpp"
#include "platform/host_info.hpp"
#include "providers/host/number.hpp"

namespace gemmery::conformance {
namespace {

enum class Fault : std::uint8_t {
  none,
  drops_the_last_k_tile,
  drops_k_beyond_64,
  counts_the_last_k_twice,
  reads_neighbours_in_the_k_tail,
  ignores_the_leading_dimension_of_a,
  ignores_the_leading_dimension_of_out,
  ignores_the_batch_stride_of_a,
  ignores_the_batch_stride_of_out,
  reverses_negative_strides,
  transposes_square_b,
  ignores_alpha,
  ignores_beta,
  reads_c_where_beta_is_zero,
  scales_c_by_alpha,
  takes_c_for_a_row,
  clears_out_before_reading_c,
  adds_zero_times_out,
  reads_inputs_where_alpha_is_zero,
  stores_nothing_where_k_is_zero,
  drops_c_where_k_is_zero,
  skips_the_last_row,
  skips_the_n_tail,
  writes_past_the_end,
  writes_a_row_too_many,
  writes_the_gap_after_a_row,
  writes_its_input,
  truncates_the_output,
  accumulates_in_half,
  saturates_overflow,
  rounds_inputs_to_tf32,
  accumulates_double_in_single,
  reads_uint8_as_int8,
  wraps_integers,
  rounds_half_away,
  flickers,
};

// The operand combinations with planted faults.
enum class Combination : std::uint8_t { f32, f32_with_c, f16, f64, bytes };

struct MutantDesign {
  Fault fault;
  Combination combination;
};

struct FaultRow {
  Fault fault;
  std::string_view name;
  Combination combination;
};

#define GEMMERY_FAULT(name, combination) \
  FaultRow { Fault::name, #name, Combination::combination }
constexpr std::array fault_table{
    GEMMERY_FAULT(none, f32),
    GEMMERY_FAULT(none, f32_with_c),
    GEMMERY_FAULT(none, f16),
    GEMMERY_FAULT(none, f64),
    GEMMERY_FAULT(none, bytes),
    GEMMERY_FAULT(drops_the_last_k_tile, f32),
    GEMMERY_FAULT(drops_k_beyond_64, f32),
    GEMMERY_FAULT(counts_the_last_k_twice, f32),
    GEMMERY_FAULT(reads_neighbours_in_the_k_tail, f32),
    GEMMERY_FAULT(ignores_the_leading_dimension_of_a, f32),
    GEMMERY_FAULT(ignores_the_leading_dimension_of_out, f32),
    GEMMERY_FAULT(ignores_the_batch_stride_of_a, f32),
    GEMMERY_FAULT(ignores_the_batch_stride_of_out, f32),
    GEMMERY_FAULT(reverses_negative_strides, f32),
    GEMMERY_FAULT(transposes_square_b, f32),
    GEMMERY_FAULT(ignores_alpha, f32),
    GEMMERY_FAULT(ignores_beta, f32_with_c),
    GEMMERY_FAULT(reads_c_where_beta_is_zero, f32_with_c),
    GEMMERY_FAULT(scales_c_by_alpha, f32_with_c),
    GEMMERY_FAULT(takes_c_for_a_row, f32_with_c),
    GEMMERY_FAULT(clears_out_before_reading_c, f32_with_c),
    GEMMERY_FAULT(adds_zero_times_out, f32),
    GEMMERY_FAULT(reads_inputs_where_alpha_is_zero, f32),
    GEMMERY_FAULT(stores_nothing_where_k_is_zero, f32),
    GEMMERY_FAULT(drops_c_where_k_is_zero, f32_with_c),
    GEMMERY_FAULT(skips_the_last_row, f32),
    GEMMERY_FAULT(skips_the_n_tail, f32),
    GEMMERY_FAULT(writes_past_the_end, f32),
    GEMMERY_FAULT(writes_a_row_too_many, f32),
    GEMMERY_FAULT(writes_the_gap_after_a_row, f32),
    GEMMERY_FAULT(writes_its_input, f32),
    GEMMERY_FAULT(truncates_the_output, f16),
    GEMMERY_FAULT(accumulates_in_half, f16),
    GEMMERY_FAULT(saturates_overflow, f16),
    GEMMERY_FAULT(rounds_inputs_to_tf32, f32),
    GEMMERY_FAULT(accumulates_double_in_single, f64),
    GEMMERY_FAULT(reads_uint8_as_int8, bytes),
    GEMMERY_FAULT(wraps_integers, bytes),
    GEMMERY_FAULT(rounds_half_away, bytes),
    GEMMERY_FAULT(flickers, f32),
};
#undef GEMMERY_FAULT

OperandRule rule_of(DType dtype) {
  return {.dtype = dtype,
          .layout = LayoutRule::any,
          .alignment = static_cast<std::uint8_t>(byte_width(dtype))};
}

OperandRules rules_of(Combination combination) {
  const auto make = [](DType a, DType b, DType out, bool has_c) {
    return OperandRules{.a = rule_of(a),
                        .b = rule_of(b),
                        .c = rule_of(out),
                        .out = rule_of(out),
                        .accumulator = default_accumulator(a, b),
                        .math = Math::native,
                        .has_c = has_c};
  };
  switch (combination) {
    case Combination::f32:
      return make(DType::float32, DType::float32, DType::float32, false);
    case Combination::f32_with_c:
      return make(DType::float32, DType::float32, DType::float32, true);
    case Combination::f16:
      return make(DType::float16, DType::float16, DType::float16, false);
    case Combination::f64:
      return make(DType::float64, DType::float64, DType::float64, false);
    case Combination::bytes:
      return make(DType::uint8, DType::int8, DType::int8, false);
  }
  return {};
}

// --- the gemm -----------------------------------------------------------------------------------

std::int64_t index_of(const Tensor& t, std::int64_t l, std::int64_t r, std::int64_t c) {
  return l * t.stride(0) + r * t.stride(1) + c * t.stride(2);
}

bool has_padded_rows(const Tensor& t) {
  return t.stride(2) == 1 && t.stride(1) > t.extent(2) && t.extent(1) > 1 && t.extent(2) > 0;
}

float truncated_to_tf32(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits &= ~0x1fffu;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

double rounded_to_half(double value) { return host::rounded_to(DType::float16, {value, 0}); }

class FaultyGemm {
 public:
  FaultyGemm(const GemmArguments& arguments, Fault fault)
      : args_(arguments), problem_(arguments.problem()), fault_(fault) {}

  void run() {
    if (has(Fault::clears_out_before_reading_c)) clear();
    for (std::int64_t l = 0; l < problem_.l; ++l)
      for (std::int64_t m = 0; m < problem_.m; ++m)
        for (std::int64_t n = 0; n < problem_.n; ++n) compute(l, m, n);
    if (problem_.l > 0 && problem_.m > 0 && problem_.n > 0) finish();
  }

 private:
  bool has(Fault fault) const { return fault_ == fault; }

  void clear() {
    for (std::int64_t l = 0; l < problem_.l; ++l)
      for (std::int64_t m = 0; m < problem_.m; ++m)
        for (std::int64_t n = 0; n < problem_.n; ++n)
          host::store(problem_.out.dtype, args_.out().data(), index_of(args_.out(), l, m, n),
                      {0, 0});
  }

  std::int64_t depth() const {
    const std::int64_t k = problem_.k;
    if (has(Fault::drops_the_last_k_tile)) return k - k % 8;
    if (has(Fault::drops_k_beyond_64)) return std::min<std::int64_t>(k, 64);
    const bool has_gap = args_.a().stride(2) == 1 && args_.b().stride(1) == 1 && k > 0;
    if (has(Fault::reads_neighbours_in_the_k_tail) && has_gap) return (k + 3) / 4 * 4;
    return k;
  }

  double read_a(std::int64_t l, std::int64_t m, std::int64_t k) const {
    const Tensor& a = args_.a();
    std::int64_t index = index_of(a, has(Fault::ignores_the_batch_stride_of_a) ? 0 : l, m, k);
    if (has(Fault::reverses_negative_strides) && a.stride(1) < 0)
      index = index_of(a, l, problem_.m - 1 - m, k);
    if (has(Fault::ignores_the_leading_dimension_of_a) && has_padded_rows(a) && a.stride(0) >= 0)
      index = l * a.stride(0) + m * problem_.k + k;
    const DType dtype = has(Fault::reads_uint8_as_int8) ? DType::int8 : a.dtype();
    return adjusted(host::load(dtype, a.data(), index));
  }

  double read_b(std::int64_t l, std::int64_t k, std::int64_t n) const {
    const bool swaps = has(Fault::transposes_square_b) && problem_.k == problem_.n;
    return adjusted(
        host::load(args_.b().dtype(), args_.b().data(),
                   swaps ? index_of(args_.b(), l, n, k) : index_of(args_.b(), l, k, n)));
  }

  double adjusted(double value) const {
    return has(Fault::rounds_inputs_to_tf32)
               ? static_cast<double>(truncated_to_tf32(static_cast<float>(value)))
               : value;
  }

  double accumulate(std::int64_t l, std::int64_t m, std::int64_t n) const {
    const bool is_single =
        problem_.accumulator == DType::float32 || has(Fault::accumulates_double_in_single);
    double sum = 0;
    const std::int64_t end = depth();
    for (std::int64_t k = 0; k < end; ++k) {
      sum = std::fma(read_a(l, m, k), read_b(l, k, n), sum);
      if (is_single) sum = static_cast<double>(static_cast<float>(sum));
      if (has(Fault::accumulates_in_half)) sum = rounded_to_half(sum);
    }
    if (has(Fault::counts_the_last_k_twice) && problem_.k % 2 == 1)
      sum += read_a(l, m, problem_.k - 1) * read_b(l, problem_.k - 1, n);
    return sum;
  }

  double addend(std::int64_t l, std::int64_t m, std::int64_t n) const {
    if (has(Fault::adds_zero_times_out))
      return 0 * host::load(problem_.out.dtype, args_.out().data(), index_of(args_.out(), l, m, n));
    if (args_.beta() == 0 && !has(Fault::reads_c_where_beta_is_zero) && !has(Fault::ignores_beta))
      return 0;
    if (!args_.c() || (has(Fault::drops_c_where_k_is_zero) && problem_.k == 0)) return 0;
    const std::int64_t row = has(Fault::takes_c_for_a_row) ? 0 : m;
    const double value =
        host::load(args_.c()->dtype(), args_.c()->data(), index_of(*args_.c(), l, row, n));
    const double scaled = has(Fault::ignores_beta) ? value : args_.beta() * value;
    return has(Fault::scales_c_by_alpha) ? args_.alpha() * scaled : scaled;
  }

  void compute(std::int64_t l, std::int64_t m, std::int64_t n) {
    if (has(Fault::stores_nothing_where_k_is_zero) && problem_.k == 0) return;
    if (has(Fault::skips_the_last_row) && m > 0 && m == problem_.m - 1) return;
    if (has(Fault::skips_the_n_tail) && n >= problem_.n - problem_.n % 4) return;
    const double alpha = has(Fault::ignores_alpha) ? 1 : args_.alpha();
    const bool reads = alpha != 0 || has(Fault::reads_inputs_where_alpha_is_zero);
    store(l, m, n, (reads ? alpha * accumulate(l, m, n) : 0) + addend(l, m, n));
  }

  void store(std::int64_t l, std::int64_t m, std::int64_t n, double value) {
    static std::atomic<unsigned> runs{0};
    const DType dtype = problem_.out.dtype;
    if (has(Fault::truncates_the_output)) value = truncated(value);
    if (has(Fault::saturates_overflow) && std::isinf(host::rounded_to(dtype, {value, 0})))
      value = std::copysign(65504.0, value);
    if (has(Fault::wraps_integers))
      value = static_cast<double>(
          static_cast<std::int8_t>(static_cast<std::int64_t>(std::nearbyint(value))));
    if (has(Fault::rounds_half_away)) value = std::round(value);
    if (has(Fault::flickers) && m == 0 && n == 0 && runs++ % 2 == 1)
      value = static_cast<double>(std::nextafter(static_cast<float>(value), 0.0f));
    std::int64_t index =
        index_of(args_.out(), has(Fault::ignores_the_batch_stride_of_out) ? 0 : l, m, n);
    if (has(Fault::ignores_the_leading_dimension_of_out) && has_padded_rows(args_.out()) &&
        args_.out().stride(0) >= 0)
      index = l * args_.out().stride(0) + m * problem_.n + n;
    host::store(dtype, args_.out().data(), index, {value, 0});
  }

  // Rounds toward zero.
  double truncated(double value) const {
    const double rounded = rounded_to_half(value);
    if (!std::isfinite(rounded) || std::abs(rounded) <= std::abs(value)) return value;
    const int exponent = std::max(std::ilogb(rounded), -14);
    return rounded -
           std::copysign(
               std::ldexp(1.0,
                          exponent - 10 - (std::abs(rounded) == std::ldexp(1.0, exponent) ? 1 : 0)),
               rounded);
  }

  // Faults that occur at the end of a run.
  void finish() {
    const Tensor& out = args_.out();
    if (has(Fault::writes_past_the_end) && out.stride(2) == 1 && out.stride(0) >= 0 &&
        out.stride(1) >= 0)
      host::store(out.dtype(), out.data(),
                  index_of(out, problem_.l - 1, problem_.m - 1, problem_.n - 1) + 1, {1, 0});
    if (has(Fault::writes_a_row_too_many) && has_padded_rows(out))
      for (std::int64_t n = 0; n < problem_.n; ++n)
        host::store(out.dtype(), out.data(), index_of(out, problem_.l - 1, problem_.m, n), {1, 0});
    if (has(Fault::writes_the_gap_after_a_row) && has_padded_rows(out))
      host::store(out.dtype(), out.data(), index_of(out, 0, 0, problem_.n - 1) + 1, {1, 0});
    if (has(Fault::writes_its_input) && problem_.k > 0)
      host::store(args_.a().dtype(), args_.a().data(), 0,
                  {host::load(args_.a().dtype(), args_.a().data(), 0) + 1, 0});
  }

  const GemmArguments& args_;
  const GemmProblem& problem_;
  Fault fault_;
};

// --- the family ---------------------------------------------------------------------------------

class NoArtifact final : public ArtifactState {
 public:
  explicit NoArtifact(const Kernel& kernel) : kernel_(kernel) {}
  const Kernel& kernel() const noexcept override { return kernel_; }
  std::vector<Target> targets() const override { return {Target::cpu()}; }
  std::string_view source() const noexcept override { return {}; }
  std::string_view log() const noexcept override { return {}; }
  double compile_ms() const noexcept override { return 0; }
  std::optional<CodeResources> resources() const override { return std::nullopt; }
  void load(Device) const override {}
  void run(const GemmArguments& arguments, const RunOptions& options) const override {
    kernel_.family().run(kernel_, arguments, options);
  }
  PreparedLaunch bind(const GemmArguments&, std::size_t) const override {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = "bind",
                 .expected = "a kernel that can be bound",
                 .got = "a mutant"});
  }

 private:
  Kernel kernel_;
};

class Mutants final : public Family {
 public:
  std::string_view provider() const noexcept override { return "test"; }
  std::string_view name() const noexcept override { return "mutants"; }
  int version() const noexcept override { return 1; }

  void match(const Query& query, std::vector<RankedKernel>& kernels) const override {
    if (!query.device.target.is_cpu()) return;
    enumerate([&](const Kernel& kernel) {
      if (kernel::keeps_rules(kernel.operands(), query.problem)) kernels.emplace_back(kernel, 1e12);
    });
  }
  void explain(const Query&, std::vector<Reason>& reasons) const override {
    reasons.push_back({.provider = "test",
                       .family = "mutants",
                       .design_class = {},
                       .failed = "not meant to fit",
                       .fitting = 0,
                       .nearest = {}});
  }
  void enumerate(const std::function<void(const Kernel&)>& visit) const override {
    for (const FaultRow& row : fault_table) visit(make(row));
  }
  std::string kernel_name(const Kernel& kernel) const override {
    const auto design = kernel.design().as<MutantDesign>();
    for (const FaultRow& row : fault_table) {
      if (row.fault == design.fault && row.combination == design.combination)
        return fmt::format("mutant1_{}_{}", static_cast<int>(row.combination), row.name);
    }
    return {};
  }
  std::optional<Kernel> parse_name(std::string_view kernel_name) const override {
    for (const FaultRow& row : fault_table) {
      const Kernel kernel = make(row);
      if (kernel.name() == kernel_name) return kernel;
    }
    return std::nullopt;
  }
  std::vector<DesignField> design_fields(const Kernel& kernel) const override {
    return {{"fault", this->kernel_name(kernel)}, {"tile", "4x4x8"}};
  }
  std::vector<Target> targets(const Kernel&) const override { return {Target::cpu()}; }
  const DeviceInfo* device_info(Device device) const override {
    return device.is_cpu() ? &platform::host_device_info() : nullptr;
  }
  Target target_for(const Kernel&, const DeviceInfo&) const override { return Target::cpu(); }
  Status supports(const Kernel&, const Query&) const override { return Status::success(); }
  std::size_t workspace_bytes(const Kernel&, const GemmArguments&) const override { return 0; }
  Artifact compile(const Kernel& kernel, Target) const override {
    return Artifact(std::make_shared<NoArtifact>(kernel));
  }
  void run(const Kernel& kernel, const GemmArguments& arguments, const RunOptions&) const override {
    FaultyGemm(arguments, kernel.design().as<MutantDesign>().fault).run();
  }

 private:
  Kernel make(const FaultRow& row) const {
    return Kernel(*this, rules_of(row.combination),
                  DesignBytes::of(MutantDesign{row.fault, row.combination}));
  }
};

std::vector<Kernel> kernels_where(const Family& family, bool wants_fault) {
  std::vector<Kernel> kernels;
  family.enumerate([&](const Kernel& kernel) {
    const bool has_fault = kernel.design().as<MutantDesign>().fault != Fault::none;
    if (has_fault == wants_fault) kernels.push_back(kernel);
  });
  return kernels;
}

}  // namespace

std::unique_ptr<Family> make_mutants() { return std::make_unique<Mutants>(); }
std::vector<Kernel> sound_kernels(const Family& family) { return kernels_where(family, false); }
std::vector<Kernel> faulty_kernels(const Family& family) { return kernels_where(family, true); }

}  // namespace gemmery::conformance
