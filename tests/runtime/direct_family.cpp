// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/direct_family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>

#include "tests/driver/fake_driver.hpp"

namespace gemmery::tests {
namespace {

constexpr std::array<Target, 4> all_targets{Target{80, 0}, Target{90, 0}, Target{100, 0},
                                            Target{120, 0}};
constexpr std::uint32_t threads_per_block = 128;

DirectDesign design_of(const Kernel& kernel) { return kernel.design().as<DirectDesign>(); }

std::string entry_of(const DirectDesign& design) {
  return fmt::format("direct_{}_{}_{}{}_{}_{}_{}", design.number, design.workspace_bytes,
                     design.zeroed_bytes < 0 ? "alpha" : "", std::abs(design.zeroed_bytes),
                     design.shared_bytes, design.delay_us, design.block_limit);
}

// If the workspace must be cleared for each launch, the kernel writes a nonzero value to
// workspace[0] and adds workspace[1], which it never writes, to its results, so that they are wrong
// without the clearing.
constexpr std::string_view source = R"(
struct Parameters {{
  const float* a; const float* b; const float* c; float* out; unsigned* workspace;
  long long a_strides[3], b_strides[3], c_strides[3], out_strides[3];
  long long m, n, k, l;
  float alpha, beta;
}};
static_assert(sizeof(Parameters) == {size}, "host and device agree");

extern "C" __global__ void __launch_bounds__(128) {entry}(const __grid_constant__ Parameters p) {{
  const int delay_us = {delay};
  if (delay_us > 0) {{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {{ asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); }} while ((long long)(now - start) < 1000ll * delay_us);
  }}
  const bool is_cleared = {zeroed} > 0;
  const bool leaves_zeros = {zeroed} < 0;
  const int zeroed_words = leaves_zeros ? (int)p.alpha * 4 : 0;
  const float dirt = is_cleared ? (float)p.workspace[1] : leaves_zeros ? (float)p.workspace[zeroed_words - 4] : 0.0f;
  if (is_cleared) atomicAdd(p.workspace, 1u);
  if (leaves_zeros && blockIdx.x == 0 && threadIdx.x == 0) p.workspace[zeroed_words] = 1;
  const unsigned m = p.m, n = p.n, count = p.l * m * n;
  for (unsigned i = blockIdx.x * 128 + threadIdx.x; i < count; i += gridDim.x * 128) {{
    const unsigned column = i % n, row = i / n % m, batch = i / n / m;
    float sum = 0;
    #pragma unroll 1
    for (unsigned k = 0; k < p.k; ++k)
      sum += p.a[batch * p.a_strides[0] + row * p.a_strides[1] + k * p.a_strides[2]] *
             p.b[batch * p.b_strides[0] + k * p.b_strides[1] + column * p.b_strides[2]];
    float result = p.alpha * sum + dirt;
    if (p.beta != 0) result += p.beta * p.c[batch * p.c_strides[0] + row * p.c_strides[1] + column * p.c_strides[2]];
    p.out[batch * p.out_strides[0] + row * p.out_strides[1] + column * p.out_strides[2]] = result;
  }}
}}
)";

void copy_strides(const Tensor& tensor, std::int64_t (&strides)[3]) {
  for (int d = 0; d < 3; ++d) strides[d] = tensor.stride(d);
}

// The same computation on the host, for the fake driver.
void run_on_host(const DirectParameters& p, bool is_cleared, std::uint32_t threads) {
  const float dirt = is_cleared ? static_cast<float>(p.workspace[1]) : 0.0F;
  if (is_cleared) p.workspace[0] += threads;
  for (std::int64_t i = 0; i < p.l * p.m * p.n; ++i) {
    const std::int64_t column = i % p.n;
    const std::int64_t row = i / p.n % p.m;
    const std::int64_t batch = i / p.n / p.m;
    float sum = 0;
    for (std::int64_t k = 0; k < p.k; ++k) {
      sum += p.a[batch * p.a_strides[0] + row * p.a_strides[1] + k * p.a_strides[2]] *
             p.b[batch * p.b_strides[0] + k * p.b_strides[1] + column * p.b_strides[2]];
    }
    float result = p.alpha * sum + dirt;
    if (p.beta != 0)
      result +=
          p.beta * p.c[batch * p.c_strides[0] + row * p.c_strides[1] + column * p.c_strides[2]];
    p.out[batch * p.out_strides[0] + row * p.out_strides[1] + column * p.out_strides[2]] = result;
  }
}

}  // namespace

const DirectFamily& DirectFamily::instance() {
  static const DirectFamily* const family = new DirectFamily;
  return *family;
}

Kernel DirectFamily::kernel(const DirectDesign& design, bool has_c) {
  const OperandRule rule{.dtype = DType::float32, .layout = LayoutRule::any, .alignment = 4};
  const OperandRules rules{.a = rule, .b = rule, .c = rule, .out = rule, .has_c = has_c};
  return Kernel(instance(), rules, DesignBytes::of(design));
}

void DirectFamily::match(const Query& query, std::vector<RankedKernel>& kernels) const {
  enumerate([&](const Kernel& one) {
    if (one.supports(query.problem, query.device)) kernels.emplace_back(one, 1e6);
  });
}

void DirectFamily::explain(const Query&, std::vector<Reason>&) const {}
void DirectFamily::enumerate(const std::function<void(const Kernel&)>& visit) const {
  visit(kernel({}));
}
std::string DirectFamily::kernel_name(const Kernel& one) const { return entry_of(design_of(one)); }
std::optional<Kernel> DirectFamily::parse_name(std::string_view) const { return std::nullopt; }
std::vector<DesignField> DirectFamily::design_fields(const Kernel&) const { return {}; }
std::span<const Target> DirectFamily::target_table(const Kernel&) const noexcept {
  return all_targets;
}

runtime::EmittedSource DirectFamily::emit(const Kernel& one, Target) const {
  const DirectDesign design = design_of(one);
  const std::string entry = entry_of(design);
  return {.text = fmt::format(source, fmt::arg("size", sizeof(DirectParameters)),
                              fmt::arg("entry", entry), fmt::arg("delay", design.delay_us),
                              fmt::arg("zeroed", design.zeroed_bytes)),
          .entry = entry,
          .max_dynamic_shared_bytes = design.shared_bytes,
          .options = {}};
}

void DirectFamily::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  const DirectDesign design = design_of(request.kernel);
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  DirectParameters parameters{
      .a = static_cast<const float*>(arguments.a().data()),
      .b = static_cast<const float*>(arguments.b().data()),
      .c = arguments.c() ? static_cast<const float*>(arguments.c()->data()) : nullptr,
      .out = static_cast<float*>(arguments.out().data()),
      .workspace = nullptr,
      .a_strides = {},
      .b_strides = {},
      .c_strides = {},
      .out_strides = {},
      .m = problem.m,
      .n = problem.n,
      .k = problem.k,
      .l = problem.l,
      .alpha = static_cast<float>(arguments.alpha()),
      .beta = arguments.c() ? static_cast<float>(arguments.beta()) : 0.0F};
  copy_strides(arguments.a(), parameters.a_strides);
  copy_strides(arguments.b(), parameters.b_strides);
  copy_strides(arguments.out(), parameters.out_strides);
  if (arguments.c()) copy_strides(*arguments.c(), parameters.c_strides);
  plan.set_parameters(parameters);

  const std::int64_t blocks =
      (problem.l * problem.m * problem.n + threads_per_block - 1) / threads_per_block;
  std::int64_t limit = design.block_limit > 0 ? design.block_limit : 1 << 20;
  if (request.max_multiprocessors > 0)
    limit = std::min<std::int64_t>(limit, request.max_multiprocessors);
  plan.shape.grid = {static_cast<std::uint32_t>(std::min(blocks, limit)), 1, 1};
  plan.shape.block = {threads_per_block, 1, 1};
  plan.shape.shared_bytes = static_cast<std::uint32_t>(design.shared_bytes);
  plan.workspace_bytes = static_cast<std::size_t>(design.workspace_bytes);
  plan.leaves_zeros = design.zeroed_bytes < 0;
  plan.zeroed_workspace_bytes = static_cast<std::size_t>(
      plan.leaves_zeros ? -design.zeroed_bytes * static_cast<int>(arguments.alpha())
                        : design.zeroed_bytes);
  plan.workspace_slot = offsetof(DirectParameters, workspace);
}

void define_on_fake_driver(const DirectDesign& design) {
  define_fake_kernel(
      entry_of(design), sizeof(DirectParameters), [design](const FakeLaunch& launch) {
        const auto& parameters = *static_cast<const DirectParameters*>(launch.parameters);
        run_on_host(parameters, design.zeroed_bytes > 0, launch.config.grid_x * threads_per_block);
      });
}

}  // namespace gemmery::tests
