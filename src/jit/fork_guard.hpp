// SPDX-License-Identifier: Apache-2.0
// A fork during a compilation leaves the child with NVRTC's locks held by threads that it does not
// have: a compilation there hangs (seen in 1 of 20 children). The child gets an error instead.
#pragma once

namespace gemmery::jit {

// Held while this thread is inside the compiler, or uses state shared with threads that are.
class CompilationInFlight {
 public:
  // Throws Error (unavailable) in a child that was forked while another thread held one.
  CompilationInFlight();
  ~CompilationInFlight();
  CompilationInFlight(const CompilationInFlight&) = delete;
  CompilationInFlight& operator=(const CompilationInFlight&) = delete;
};

}  // namespace gemmery::jit
