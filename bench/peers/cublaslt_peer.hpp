// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's first heuristic choice for a problem, launched directly.
#pragma once

#include <memory>
#include <string>

#include <gemmery/arguments.hpp>

namespace gemmery::peers {

class CublasLtPeer {
 public:
  // The context of the arguments' device must be current. Throws std::runtime_error if cuBLASLt
  // does not support the problem.
  CublasLtPeer(const GemmArguments& arguments, std::size_t workspace_bytes);
  ~CublasLtPeer();
  CublasLtPeer(const CublasLtPeer&) = delete;
  CublasLtPeer& operator=(const CublasLtPeer&) = delete;

  // Runs the same problem on other memory.
  void run(const GemmArguments& arguments, void* workspace, void* stream) const;

  std::string compute() const;    // "CUBLAS_COMPUTE_32F"
  std::string algorithm() const;  // identifies the choice
  static std::string version();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gemmery::peers
