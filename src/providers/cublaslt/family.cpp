// SPDX-License-Identifier: Apache-2.0
// Answers queries by asking the heuristics; nothing is compiled.
#include "providers/cublaslt/family.hpp"

#include <gemmery/error.hpp>

#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "kernel/codeless.hpp"
#include "kernel/epilogue.hpp"
#include "kernel/rules.hpp"
#include "providers/cublaslt/prediction.hpp"
#include "runtime/run_workspace.hpp"

namespace gemmery::cublaslt {
namespace {

Algorithm algorithm_of(const Kernel& kernel) { return kernel.design().as<Algorithm>(); }

// --- rules --------------------------------------------------------------------------------------

OperandRule rule_of(const MatrixType& matrix, std::int64_t rows, std::int64_t columns) {
  const LayoutRule layout =
      layout_of(matrix, rows, columns) == Layout::row ? LayoutRule::row : LayoutRule::column;
  return {matrix.dtype, layout, kernel::run_alignment(layout, matrix, rows, columns)};
}

// Without fast accumulation, float8 has promoted accumulators.
Math math_of(const GemmProblem& problem) {
  const bool is_float8 = is_floating(problem.a.dtype) && bit_width(problem.a.dtype) == 8;
  return is_float8 && problem.math == Math::native ? Math::fp8_promoted : problem.math;
}

OperandRules rules_for(const GemmProblem& p) {
  OperandRules rules{.a = rule_of(p.a, p.m, p.k),
                     .b = rule_of(p.b, p.k, p.n),
                     .c = {},
                     .out = rule_of(p.out, p.m, p.n),
                     .accumulator = p.accumulator,
                     .math = math_of(p),
                     .has_c = p.c.has_value()};
  if (p.c) rules.c = rule_of(*p.c, p.m, p.n);
  return rules;
}

Kernel kernel_of(const Family& family, const GemmProblem& problem, const Algorithm& algorithm) {
  return {family, rules_for(problem), DesignBytes::of(algorithm), problem.epilogue};
}

// --- artifacts ----------------------------------------------------------------------------------

class LtArtifact final : public kernel::CodelessArtifact {
 public:
  LtArtifact(const CublasltFamily& family, const Kernel& kernel, Target target)
      : CodelessArtifact(kernel, target), family_(family) {}

  void load(Device device) const override { (void)family_.open(device); }
  PreparedLaunch bind(const GemmArguments& arguments, std::size_t workspace_bytes) const override {
    return PreparedLaunch(
        prepare(kernel(), family_.plan(kernel(), arguments), arguments, workspace_bytes));
  }

 private:
  const CublasltFamily& family_;
};

Status check_numbers_of(const Query& query, const Answer& answer) {
  if (query.arguments == nullptr) return Status::success();
  return check_numbers(answer.product(), *query.arguments);
}

[[noreturn]] void refuse_device(Device device) {
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "cuBLASLt",
               .expected = "a GPU",
               .got = to_string(device)});
}

}  // namespace

CublasltFamily::CublasltFamily(const FoundLibrary& (*library)(), DeviceType type)
    : library_(library), type_(type) {}

// --- devices ------------------------------------------------------------------------------------

const DeviceInfo* CublasltFamily::device_info(Device device) const {
  return device.type == type_ ? &driver::open_device(device).info() : nullptr;
}

Target CublasltFamily::target_for(const Kernel& kernel, const DeviceInfo&) const {
  return algorithm_of(kernel).target();
}

DeviceAnswers& CublasltFamily::answers_of(const driver::GpuDevice& device) const {
  std::atomic<DeviceAnswers*>& place = devices_[static_cast<std::size_t>(device.device().index)];
  if (DeviceAnswers* const answers = place.load(std::memory_order_acquire)) return *answers;
  const std::scoped_lock lock(opening_);
  if (DeviceAnswers* const answers = place.load(std::memory_order_acquire)) return *answers;
  const FoundLibrary& found = library_();
  if (!found.library) {
    throw Error({.kind = ErrorKind::unavailable,
                 .operand = "cuBLASLt",
                 .expected = "the library",
                 .got = found.reason});
  }
  auto* const answers = new DeviceAnswers(*found.library, device);
  place.store(answers, std::memory_order_release);
  return *answers;
}

DeviceAnswers& CublasltFamily::open(Device device) const {
  if (device.type != type_) refuse_device(device);
  return answers_of(driver::open_device(device));
}

Status CublasltFamily::find_device(const Query& query, const driver::GpuDevice*& device) const {
  if (query.device.target.is_cpu())
    return Status::fail("device: expected a GPU, got " + query.device.name);
  if (query.arguments != nullptr && query.arguments->device().type != type_)
    return Status::fail("device: expected a GPU, got " + to_string(query.arguments->device()));
  device = query.arguments != nullptr ? &driver::open_device(query.arguments->device())
                                      : driver::find_opened_device(type_, query.device);
  if (device != nullptr) return Status::success();
  return Status::fail(
      "device: expected a GPU of this machine, which cuBLASLt's heuristics ask, got " +
      query.device.name + " by its facts");
}

// --- answers ------------------------------------------------------------------------------------

Status CublasltFamily::carries(const GemmProblem& problem) const {
  EpilogueForm form;
  return match_epilogue(problem, form);
}

Status CublasltFamily::find_answer(const Query& query,
                                   std::shared_ptr<const Answer>& answer) const {
  const driver::GpuDevice* device = nullptr;
  if (Status status = find_device(query, device); !status) return status;
  if (const FoundLibrary& found = library_(); !found.library) return Status::fail(found.reason);
  Product product;
  if (Status status = describe(query.problem, product); !status) return status;
  try {
    answer = answers_of(*device).answer_for(query.problem, product);
  } catch (const Error& error) {
    return Status::fail(error.what());
  }
  return Status::success();
}

Status CublasltFamily::find_choices(const Query& query,
                                    std::shared_ptr<const Answer>& answer) const {
  if (Status status = find_answer(query, answer); !status) return status;
  return answer->choices().empty() ? Status::fail(answer->refusal()) : Status::success();
}

// Lists are kept by problem, which does not have the numbers of the arguments.
void CublasltFamily::match(const Query& query, std::vector<RankedKernel>& kernels) const {
  std::shared_ptr<const Answer> answer;
  if (!find_choices(query, answer)) return;
  const std::vector<Choice>& choices = answer->choices();
  const std::vector<double> times = predict_us(query.problem, query.device, choices);
  for (std::size_t i = 0; i < choices.size(); ++i)
    kernels.emplace_back(kernel_of(*this, query.problem, choices[i].algorithm), times[i]);
}

void CublasltFamily::explain(const Query& query, std::vector<Reason>& reasons) const {
  std::shared_ptr<const Answer> answer;
  Status status = find_choices(query, answer);
  if (status) status = check_numbers_of(query, *answer);
  reasons.push_back({.provider = std::string(provider()),
                     .family = std::string(name()),
                     .design_class = {},
                     .failed = status.error(),
                     .fitting = status ? static_cast<int>(answer->choices().size()) : 0,
                     .nearest = {}});
}

Status CublasltFamily::supports(const Kernel& kernel, const Query& query) const {
  std::shared_ptr<const Answer> answer;
  if (Status status = find_answer(query, answer); !status) return status;
  if (Status status = check_numbers_of(query, *answer); !status) return status;
  const Algorithm algorithm = algorithm_of(kernel);
  if (const Version found = library_().library->version; found != algorithm.version())
    return Status::fail(fmt::format("version: expected cuBLASLt {}, got {} ({})",
                                    to_string(algorithm.version()), to_string(found),
                                    library_().library->path));
  if (algorithm.architecture != query.device.target.architecture)
    return Status::fail(fmt::format("target: expected {}, got {}", to_string(algorithm.target()),
                                    to_string(query.device.target)));
  std::string reason;
  return answer->find(algorithm, reason) != nullptr ? Status::success() : Status::fail(reason);
}

// --- names --------------------------------------------------------------------------------------

std::string CublasltFamily::kernel_name(const Kernel& kernel) const {
  return name_of(kernel.operands(), algorithm_of(kernel)) +
         kernel::epilogue_suffix(kernel.epilogue());
}

std::optional<Kernel> CublasltFamily::parse_name(std::string_view kernel_name) const {
  const std::optional<EpilogueId> epilogue = kernel::take_epilogue_suffix(kernel_name);
  if (!epilogue) return std::nullopt;
  const auto parsed = cublaslt::parse_name(kernel_name);
  if (!parsed) return std::nullopt;
  return Kernel(*this, parsed->rules, DesignBytes::of(parsed->algorithm), *epilogue);
}

std::vector<DesignField> CublasltFamily::design_fields(const Kernel& kernel) const {
  return fields_of(algorithm_of(kernel));
}

std::vector<Target> CublasltFamily::targets(const Kernel& kernel) const {
  return {algorithm_of(kernel).target()};
}

// --- running ------------------------------------------------------------------------------------

Plan CublasltFamily::plan(const Kernel& kernel, const GemmArguments& arguments) const {
  Plan plan;
  plan.device = &open(arguments.device());
  plan.library = library_().library.get();
  Product product;
  Status status = describe(arguments.problem(), product);
  if (status) {
    std::string reason;
    plan.answer = plan.device->answer_for(arguments.problem(), product);
    plan.choice = plan.answer->find(algorithm_of(kernel), reason);
    if (plan.choice != nullptr) return plan;
    status = Status::fail(reason);
  }
  throw Error({.kind = ErrorKind::unsupported, .operand = kernel.name(), .got = status.error()});
}

std::size_t CublasltFamily::workspace_bytes(const Kernel& kernel,
                                            const GemmArguments& arguments) const {
  return plan(kernel, arguments).choice->workspace_bytes;
}

Artifact CublasltFamily::compile(const Kernel& kernel, Target target) const {
  return Artifact(std::make_shared<LtArtifact>(*this, kernel, target));
}

void CublasltFamily::run(const Kernel& kernel, const GemmArguments& arguments,
                         const RunOptions& options) const {
  driver::refuse_after_fork();
  kernel::check_stream(options.stream, arguments.device());
  const Plan plan = this->plan(kernel, arguments);
  const runtime::RunWorkspace workspace(kernel, options, plan.choice->workspace_bytes);
  put_once(kernel, plan, arguments, workspace.data(), options.stream);
}

}  // namespace gemmery::cublaslt
