// SPDX-License-Identifier: Apache-2.0
// What cuBLASLt's heuristics answer on one device, kept by problem.
//
// A handle belongs to the device that was current when it was made; any number of threads may use
// it at the same time (cuBLAS's manual, thread safety). It is never destroyed.
#pragma once

#include <gemmery/problem.hpp>

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/driver.hpp"
#include "providers/cublaslt/algorithm.hpp"
#include "providers/cublaslt/descriptors.hpp"
#include "providers/cublaslt/product.hpp"

namespace gemmery::cublaslt {

// An algorithm that runs a problem.
struct Choice {
  Algorithm algorithm;
  AlgorithmData data;
  std::size_t workspace_bytes = 0;
  float waves = 0;
};

// A problem on a device. Immutable, apart from what it has looked up.
class Answer {
 public:
  // The device's context must be current. Throws Error if a call fails that is not a question.
  Answer(const Library& library, Handle handle, Target device, const Product& product);

  const Product& product() const noexcept { return product_; }
  const Layouts& layouts() const noexcept { return layouts_; }
  // For products without attachments.
  MatmulDescriptor operation() const noexcept { return operation_.get(); }
  // In the order of the heuristics, fastest first.
  const std::vector<Choice>& choices() const noexcept { return choices_; }
  // Why there are none.
  const std::string& refusal() const noexcept { return refusal_; }

  // The algorithm for this problem, though the heuristics may not have named it; nullptr with the
  // reason if it cannot run it. Lives as long as the answer. Any thread.
  const Choice* find(const Algorithm& algorithm, std::string& reason) const;

 private:
  void ask_heuristics();
  void take(const HeuristicResult& result);
  Status check_faults(const Algorithm& algorithm) const;
  Choice configured(const Algorithm& algorithm) const;

  const Library& library_;
  Handle handle_;
  Target device_;
  Product product_;
  Layouts layouts_;
  Owned<MatmulDescriptor> operation_;
  std::vector<Choice> choices_;
  std::string refusal_;

  mutable std::mutex looking_up_;
  mutable std::vector<std::unique_ptr<const Choice>> looked_up_;
};

class DeviceAnswers {
 public:
  // Makes the handle. Throws Error if that fails.
  DeviceAnswers(const Library& library, const driver::GpuDevice& device);

  Handle handle() const noexcept { return handle_; }
  const driver::GpuDevice& device() const noexcept { return device_; }

  // Never nullptr. Any thread.
  std::shared_ptr<const Answer> answer_for(const GemmProblem& problem, const Product& product);

 private:
  static constexpr std::size_t most_problems = 4096;  // then all are forgotten

  const Library& library_;
  const driver::GpuDevice& device_;
  Handle handle_ = nullptr;
  std::shared_mutex mutex_;
  std::unordered_map<GemmProblem, std::shared_ptr<const Answer>> answers_;
};

}  // namespace gemmery::cublaslt
