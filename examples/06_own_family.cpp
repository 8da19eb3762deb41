// SPDX-License-Identifier: Apache-2.0
// Bring your own kernel: a family with one kernel for the CPU, registered and then discovered like
// every other. It computes float32 products of two rows times columns in plain loops, and refuses
// what it cannot do with a reason.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <gemmery/gemmery.hpp>

namespace {

using namespace gemmery;

constexpr std::string_view own_name = "user_two_rows_f32_v1";

float load(const Tensor& tensor, std::int64_t l, std::int64_t row, std::int64_t column) {
  return static_cast<const float*>(
      tensor.data())[l * tensor.stride(0) + row * tensor.stride(1) + column * tensor.stride(2)];
}

float& element(const Tensor& tensor, std::int64_t l, std::int64_t row, std::int64_t column) {
  return static_cast<float*>(
      tensor.data())[l * tensor.stride(0) + row * tensor.stride(1) + column * tensor.stride(2)];
}

// The kernel itself. It takes any strides, so it needs only the views of rank 3.
void multiply(const GemmArguments& arguments) {
  const GemmProblem& problem = arguments.problem();
  for (std::int64_t l = 0; l < problem.l; ++l) {
    for (std::int64_t row = 0; row < problem.m; ++row) {
      for (std::int64_t column = 0; column < problem.n; ++column) {
        float sum = 0;
        for (std::int64_t k = 0; k < problem.k; ++k)
          sum += load(arguments.a(), l, row, k) * load(arguments.b(), l, k, column);
        element(arguments.out(), l, row, column) = static_cast<float>(arguments.alpha()) * sum;
      }
    }
  }
}

// A launch of code in this program: nothing to compile, nothing to load.
class OwnLaunch : public PreparedLaunchState {
 public:
  explicit OwnLaunch(const GemmArguments& arguments) : arguments_(arguments) {}
  void set_data(std::string_view operand, const void* data) override {
    arguments_.set_data(operand, data);
  }
  void set_scalars(double alpha, double beta) override { arguments_.set_scalars(alpha, beta); }
  void set_scalar(std::string_view name, double value) override {
    arguments_.set_scalar(name, value);
  }
  void launch(Stream) override { multiply(arguments_); }

 private:
  GemmArguments arguments_;
};

class OwnArtifact : public ArtifactState {
 public:
  explicit OwnArtifact(const Kernel& kernel) : kernel_(kernel) {}
  const Kernel& kernel() const noexcept override { return kernel_; }
  std::vector<Target> targets() const override { return {Target::cpu()}; }
  std::string_view source() const noexcept override { return {}; }
  std::string_view log() const noexcept override { return {}; }
  double compile_ms() const noexcept override { return 0; }
  std::optional<CodeResources> resources() const override { return std::nullopt; }
  void load(Device) const override {}
  void run(const GemmArguments& arguments, const RunOptions&) const override {
    multiply(arguments);
  }
  PreparedLaunch bind(const GemmArguments& arguments, std::size_t) const override {
    return PreparedLaunch(std::make_unique<OwnLaunch>(arguments));
  }

 private:
  Kernel kernel_;
};

class TwoRowsFamily : public Family {
 public:
  std::string_view provider() const noexcept override { return "user"; }
  std::string_view name() const noexcept override { return "two_rows"; }
  int version() const noexcept override { return 1; }

  void match(const Query& query, std::vector<RankedKernel>& kernels) const override {
    if (refusal(query).empty()) kernels.emplace_back(only_kernel(), predicted_us(query.problem));
  }

  void explain(const Query& query, std::vector<Reason>& reasons) const override {
    Reason reason{.provider = "user", .family = "two_rows", .failed = refusal(query)};
    reason.fitting = reason.failed.empty() ? 1 : 0;
    reasons.push_back(reason);
  }

  void enumerate(const std::function<void(const Kernel&)>& visit) const override {
    visit(only_kernel());
  }

  std::string kernel_name(const Kernel&) const override { return std::string(own_name); }
  std::optional<Kernel> parse_name(std::string_view text) const override {
    return text == own_name ? std::optional(only_kernel()) : std::nullopt;
  }
  std::vector<DesignField> design_fields(const Kernel&) const override { return {{"rows", "2"}}; }
  std::vector<Target> targets(const Kernel&) const override { return {Target::cpu()}; }

  const DeviceInfo* device_info(Device device) const override {
    return device.is_cpu() ? &gemmery::device_info(device) : nullptr;
  }
  Target target_for(const Kernel&, const DeviceInfo&) const override { return Target::cpu(); }

  // The operand rules, the target and the epilogue have been checked; this checks what they cannot
  // express.
  Status supports(const Kernel&, const Query& query) const override {
    const std::string reason = refusal(query);
    return reason.empty() ? Status::success() : Status::fail(reason);
  }

  std::size_t workspace_bytes(const Kernel&, const GemmArguments&) const override { return 0; }
  Artifact compile(const Kernel& kernel, Target) const override {
    return Artifact(std::make_shared<OwnArtifact>(kernel));
  }
  void run(const Kernel&, const GemmArguments& arguments, const RunOptions&) const override {
    multiply(arguments);
  }

 private:
  // float32 everywhere, any layout, alignment of one element, no C.
  Kernel only_kernel() const {
    constexpr OperandRule any_float{
        .dtype = DType::float32, .layout = LayoutRule::any, .alignment = 4};
    return {*this, OperandRules{.a = any_float, .b = any_float, .c = {}, .out = any_float},
            DesignBytes{}};
  }

  static std::string refusal(const Query& query) {
    const GemmProblem& problem = query.problem;
    if (!query.device.target.is_cpu()) return "device: expected the CPU, got " + query.device.name;
    if (problem.m > 2) return "M: expected at most 2, got " + std::to_string(problem.m);
    if (problem.c) return "C: expected none, got one";
    for (const MatrixType& matrix : {problem.a, problem.b, problem.out}) {
      if (matrix.dtype != DType::float32)
        return "dtype: expected float32, got " + std::string(gemmery::name(matrix.dtype));
      if (matrix.alignment < 4)
        return "alignment: expected 4 bytes, got " + std::to_string(matrix.alignment);
    }
    const bool is_plain = problem.accumulator == DType::float32 && problem.math == Math::native;
    return is_plain ? "" : "accumulator and math: expected float32 and native";
  }

  // A nanosecond for a product; for two rows there is little that a blocked kernel could reuse.
  static double predicted_us(const GemmProblem& problem) { return problem.flops() / 2e3; }
};

}  // namespace

int main() {
  register_family(std::make_unique<TwoRowsFamily>());

  std::vector<float> a(2 * 64, 1), b(64 * 32, 3), out(2 * 32);
  const GemmArguments arguments({a.data(), DType::float32, {2, 64}},
                                {b.data(), DType::float32, {64, 32}},
                                {out.data(), DType::float32, {2, 32}});
  const auto kernels = get_kernels(arguments, {.providers = {"user"}});
  kernels.at(0).run(arguments, {.stream = Stream::cpu()});
  std::printf("%s: %g, expected 192\n", kernels[0].name().c_str(), static_cast<double>(out[0]));

  // The library's own verification holds it to its bound, as it does every kernel.
  const VerifyReport report = verify(parse_problem("gemm 2x100x300 a=f32"), kernels[0], {});
  std::printf("verified: %s, worst error %.0f %% of its bound\n", report.passed ? "yes" : "no",
              report.worst_ratio * 100);
  return out[0] == 192 && report.passed ? 0 : 1;
}
