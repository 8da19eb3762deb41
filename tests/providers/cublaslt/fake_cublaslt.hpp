// SPDX-License-Identifier: Apache-2.0
// A library with cuBLASLt's functions, for tests without a GPU: it computes on host memory in
// float64, checks what it is given as strictly as its manual says, and fails where the test asks.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "providers/cublaslt/cublaslt_api.hpp"

namespace gemmery::tests {

// One algorithm that the heuristics name.
struct FakeAlgorithm {
  int id = 21;
  std::uint32_t tile = 20;
  std::uint32_t stages = 36;
  int splits = 1;
  std::uint32_t reduction = 0;
  std::uint32_t option = 0;
  std::size_t workspace_bytes = 0;
  float waves = 1;
  bool uses_tensor_cores = true;
  bool has_shapes = true;  // of instructions and clusters
  cublaslt::Result state = cublaslt::Result::success;
};

// One call of cublasLtMatmul.
struct FakeMatmul {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  void* stream = nullptr;
  bool is_configured = false;  // the algorithm was made from its identifiers
};

struct FakeCublasLt {
  std::size_t version = 130102;
  std::vector<FakeAlgorithm> algorithms;             // fastest first
  std::map<std::string, cublaslt::Result> failures;  // of the next call of each function
  std::map<std::string, int> calls;
  std::vector<FakeMatmul> matmuls;
  std::function<void()> on_call;  // before what needs the device
  int live_objects = 0;           // descriptors that have not been destroyed
};

// The state of the library in a file; `fake_cublaslt` is its symbol.
using FindFakeCublasLt = FakeCublasLt*();

}  // namespace gemmery::tests
