// SPDX-License-Identifier: Apache-2.0
#include "model/peak_rate.hpp"

#include <algorithm>

#include "core/device_rates.hpp"
#include "operation/types.hpp"

namespace gemmery::model {
namespace {

int tensor_core_rate(const GemmProblem& problem, Target target) noexcept {
  const TensorCoreRates rates = tensor_core_rates(target);
  const DType a =
      bit_width(problem.b.dtype) > bit_width(problem.a.dtype) ? problem.b.dtype : problem.a.dtype;
  if (a == DType::float64) return rates.float64;
  if (is_integer(a)) return rates.integer8;
  if (bit_width(a) == 8) return rates.float8;
  if (bit_width(a) == 16) return rates.half;
  if (problem.math == Math::native) return 0;
  const bool is_tf32 = problem.math == Math::tf32 || problem.math == Math::tf32x3;
  return (is_tf32 ? rates.tf32 : rates.half) / operation::product_count(problem.math);
}

}  // namespace

int peak_rate(const GemmProblem& problem, const DeviceInfo& device) noexcept {
  const int cuda_cores = problem.accumulator == DType::float64 ? device.fma_f64_per_clock
                         : is_integer(problem.accumulator)     ? 4 * device.fma_int_per_clock
                                                               : device.fma_f32_per_clock;
  return std::max(cuda_cores, tensor_core_rate(problem, device.target));
}

}  // namespace gemmery::model
