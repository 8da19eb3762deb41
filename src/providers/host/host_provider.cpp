// SPDX-License-Identifier: Apache-2.0
// The three families of the CPU and their predicted times.
#include "providers/host/host_provider.hpp"

#include <algorithm>
#include <cmath>

#include "providers/host/host_family.hpp"
#include "providers/host/onednn.hpp"
#include "providers/host/onednn_conv.hpp"
#include "providers/host/onednn_gemm.hpp"
#include "providers/host/plain.hpp"
#include "providers/host/reference.hpp"

namespace gemmery::host {
namespace {

// The time of a product: a constant, packing, then arithmetic at a share of the CPU's nominal
// float32 rate, or memory. The shares below were measured at 1024^3 on two cores of an AMD EPYC
// (Zen 5, nominal 332 GFLOP/s; bench/peers/host_peers).
struct Speed {
  double fixed_us;
  double share;           // above 1 if instructions do more, or the clock is above nominal
  double least_batch_us;  // for each matrix of a batch
  double packing_ns = 0;  // for each element of A and B, on one core
};

double element_count(const MatrixType& matrix, std::int64_t batches, std::int64_t rows,
                     std::int64_t columns) {
  const auto matrices = static_cast<double>(matrix.batch_stride == 0 ? 1 : batches);
  return matrices * static_cast<double>(rows) * static_cast<double>(columns);
}

double predict(const GemmProblem& problem, const DeviceInfo& device, const Speed& speed) {
  // A tile of 12 by 32 is computed whole. Products with few rows or columns are bound by reading,
  // which `bytes` counts.
  const auto padded = [](std::int64_t extent, int tile) {
    return std::ceil(static_cast<double>(extent) / tile) * tile;
  };
  const double cores = std::max(1, device.multiprocessors);
  const auto batches = static_cast<double>(problem.l);
  const double products = problem.groups ? problem.flops() / 2
                                         : padded(problem.m, 12) * padded(problem.n, 32) *
                                               static_cast<double>(problem.k) * batches;
  const double nominal =
      cores * std::max(0.1, device.clock_ghz) * 1e3 * std::max(1, device.fma_f32_per_clock);
  const double memory_us = device.bandwidth_bytes_per_second > 0
                               ? problem.bytes() / device.bandwidth_bytes_per_second * 1e6
                               : 0;
  const double packed = element_count(problem.a, problem.l, problem.m, problem.k) +
                        element_count(problem.b, problem.l, problem.k, problem.n);
  return speed.fixed_us + batches * speed.least_batch_us +
         packed * speed.packing_ns * 1e-3 / cores +
         std::max(products / (nominal * speed.share), memory_us);
}

bool is_plain_type(const ProductTypes& types) { return types.accumulator != DType::float16; }

Status expected_got(std::string what, std::string expected, std::string_view got) {
  return Status::fail(std::move(what) + ": expected " + std::move(expected) + ", got " +
                      std::string(got));
}

class ReferenceFamily final : public HostFamily {
 public:
  ReferenceFamily() : HostFamily("host_reference") {}

 protected:
  Status serves_types(const ProductTypes&) const override { return Status::success(); }
  Status serves_shape(const GemmProblem&) const override { return Status::success(); }
  double predicted_us(const GemmProblem& problem, const DeviceInfo& device) const override {
    const bool is_compensated =
        problem.a.dtype == DType::float64 || problem.b.dtype == DType::float64;
    // Always the slowest: more of everything, and accumulators that pass through memory.
    const double elements = static_cast<double>(problem.l) * static_cast<double>(problem.m) *
                            static_cast<double>(problem.n);
    return predict(problem, device,
                   {.fixed_us = 50,
                    .share = is_compensated ? 0.05 : 0.2,
                    .least_batch_us = 5,
                    .packing_ns = 2}) +
           0.02 * elements;
  }
  void multiply(const GemmArguments& arguments, int) const override { run_reference(arguments); }
  std::vector<DesignField> own_design_fields() const override {
    return {{"arithmetic", "float64, exact integers"}};
  }
};

class PlainFamily final : public HostFamily {
 public:
  PlainFamily() : HostFamily("host_plain") {}

 protected:
  Status serves_types(const ProductTypes& types) const override {
    if (types.math != Math::native)
      return expected_got("math", "native", gemmery::name(types.math));
    if (!is_plain_type(types))
      return expected_got("accumulator", "float32, float64 or int32",
                          gemmery::name(types.accumulator));
    return Status::success();
  }
  Status serves_shape(const GemmProblem&) const override { return Status::success(); }
  double predicted_us(const GemmProblem& problem, const DeviceInfo& device) const override {
    return predict(
        problem, device,
        {.fixed_us = 2, .share = share_of(problem), .least_batch_us = 0.3, .packing_ns = 0.8});
  }
  void multiply(const GemmArguments& arguments, int threads) const override {
    run_plain(arguments, tile_kernels(), threads);
  }
  std::vector<DesignField> own_design_fields() const override {
    return {{"instructions", tile_kernels().instruction_set}};
  }

 private:
  static double share_of(const GemmProblem& problem) {
    if (problem.accumulator == DType::float64) return 0.4;
    return problem.accumulator == DType::int32 ? 0.5 : 0.85;
  }
};

class OnednnFamily final : public HostFamily {
 public:
  OnednnFamily() : HostFamily("host_onednn") {}
  Status availability() const override { return onednn::availability(); }
  bool takes_companions(const GemmProblem&) const noexcept override { return false; }
  bool takes_operand_programs(const GemmProblem&) const noexcept override { return false; }

 protected:
  Status serves_types(const ProductTypes& types) const override {
    return onednn_serves_types(types.a, types.b, types.accumulator, types.math);
  }
  Status serves_shape(const GemmProblem& problem) const override {
    return problem.convolution ? onednn_serves_convolution(problem) : onednn_serves(problem);
  }
  double predicted_us(const GemmProblem& problem, const DeviceInfo& device) const override {
    return predict(problem, device,
                   {.fixed_us = 6,
                    .share = share_of(problem),
                    .least_batch_us = problem.groups ? group_us : 0.2,
                    .packing_ns = is_converted(problem) && !problem.convolution ? 0.8 : 0});
  }
  // A part of a tensor may have strides that the whole tensor does not have: those of extents of 1.
  void multiply(const GemmArguments& arguments, int threads) const override {
    if (arguments.problem().convolution) return run_onednn_convolution(arguments);
    if (!onednn_serves(arguments.problem())) return run_plain(arguments, tile_kernels(), threads);
    run_onednn(arguments);
  }
  // The library has threads of its own.
  Concurrency concurrency() const noexcept override { return Concurrency::one_by_one; }
  std::vector<DesignField> own_design_fields() const override {
    return {{"library", "oneDNN " + onednn::version_text()}};
  }

 private:
  // One call for each group, and a primitive for each new group size. Calls of cached primitives
  // took 3 to 13 us (257 groups of 1x72x136, one thread, AMD EPYC); the rest estimates the creation
  // of primitives.
  static constexpr double group_us = 30;

  static bool is_in_place(DType dtype) {
    return dtype == DType::float32 || dtype == DType::bfloat16;
  }
  static bool is_converted(const GemmProblem& problem) {
    if (problem.accumulator == DType::int32) return false;
    return problem.a.dtype != problem.b.dtype || !is_in_place(problem.a.dtype);
  }
  static bool is_narrow(DType dtype) { return bit_width(dtype) < 32 && dtype != DType::float16; }

  static double share_of(const GemmProblem& problem) {
    if (problem.accumulator == DType::int32) return 5;
    const bool in_bfloat16 =
        is_narrow(problem.a.dtype) && is_narrow(problem.b.dtype) &&
        onednn::multiplies(onednn::DataType::bf16, onednn::DataType::bf16, onednn::DataType::f32);
    return in_bfloat16 ? 2.3 : 1;
  }
};

}  // namespace

std::vector<std::unique_ptr<Family>> make_families() {
  std::vector<std::unique_ptr<Family>> families;
  families.push_back(std::make_unique<OnednnFamily>());
  families.push_back(std::make_unique<PlainFamily>());
  families.push_back(std::make_unique<ReferenceFamily>());
  return families;
}

}  // namespace gemmery::host
