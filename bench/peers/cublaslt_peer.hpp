// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's first heuristic choice for a problem, launched directly.
#pragma once

#include <memory>
#include <string>

#include <gemmery/arguments.hpp>

namespace gemmery::peers {

class CublasLtPeer {
 public:
  // The context of the arguments' device is current. Throws std::runtime_error where cuBLASLt does
  // not serve the problem.
  CublasLtPeer(const GemmArguments& arguments, std::size_t workspace_bytes);
  ~CublasLtPeer();
  CublasLtPeer(const CublasLtPeer&) = delete;
  CublasLtPeer& operator=(const CublasLtPeer&) = delete;

  // The problem that it was made for, with other memory.
  void run(const GemmArguments& arguments, void* workspace, void* stream) const;

  std::string compute() const;    // "CUBLAS_COMPUTE_32F"
  std::string algorithm() const;  // what identifies the choice
  static std::string version();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gemmery::peers
