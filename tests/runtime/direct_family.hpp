// SPDX-License-Identifier: Apache-2.0
// A family of the simplest GEMM kernel (one thread per element), for tests of the code that all
// families share. Its designs differ in their scratch memory and duration. Runs on a real GPU, and
// on the fake driver by an equivalent host function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/device_family.hpp"

namespace gemmery::tests {

struct DirectDesign {
  std::int32_t number = 0;           // distinguishes kernels that are otherwise equal
  std::int32_t workspace_bytes = 0;  // 0, or at least 16
  // Bytes of the workspace that must be zero. -16: 16 for each unit of alpha, which the kernel
  // leaves zero; it writes a nonzero value after them.
  std::int32_t zeroed_bytes = 0;
  std::int32_t shared_bytes = 0;  // dynamic
  std::int32_t delay_us = 0;      // before the work
  std::int32_t block_limit = 0;   // at most this many blocks; 0: as many as there are elements
};

// The kernel's parameter; the emitted source has the same struct.
struct DirectParameters {
  const float* a;
  const float* b;
  const float* c;
  float* out;
  std::uint32_t* workspace;
  std::int64_t a_strides[3];  // batch, row, column
  std::int64_t b_strides[3];
  std::int64_t c_strides[3];
  std::int64_t out_strides[3];
  std::int64_t m, n, k, l;
  float alpha, beta;
};

class DirectFamily : public runtime::DeviceFamily {
 public:
  static const DirectFamily& instance();

  // A kernel for beta = 0, or, with a C, for beta != 0.
  static Kernel kernel(const DirectDesign& design, bool has_c = false);

  std::string_view provider() const noexcept override { return "tests"; }
  std::string_view name() const noexcept override { return "direct"; }
  int version() const noexcept override { return 1; }
  void match(const Query& query, std::vector<RankedKernel>& kernels) const override;
  void explain(const Query& query, std::vector<Reason>& reasons) const override;
  void enumerate(const std::function<void(const Kernel&)>& visit) const override;
  std::string kernel_name(const Kernel& kernel) const override;
  std::optional<Kernel> parse_name(std::string_view kernel_name) const override;
  std::vector<DesignField> design_fields(const Kernel& kernel) const override;
  std::span<const Target> target_table(const Kernel&) const noexcept override;
  Status supports(const Kernel&, const Query&) const override { return Status::success(); }

  runtime::EmittedSource emit(const Kernel& kernel, Target target) const override;
  void pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const override;
};

// Makes the kernel known to the fake driver.
void define_on_fake_driver(const DirectDesign& design);

}  // namespace gemmery::tests
