// SPDX-License-Identifier: Apache-2.0
// A process that ends while another thread is inside NVRTC destroys NVRTC's data under it: one in
// ten such ends was a segmentation fault or "LLVM ERROR: out of memory" (13.0). This guard makes
// the end wait until the cancelled compilation has left.
#pragma once

namespace gemmery::jit {

// Held while this thread opens or calls NVRTC. An end by the main thread is guarded at any moment.
// An `exit` from another thread is not guarded while the loader opens NVRTC, nor between two checks
// of the first compilation, which sets NVRTC up.
class InsideNvrtc {
 public:
  // Throws Error (unavailable) once the process is ending.
  InsideNvrtc();
  ~InsideNvrtc();
  InsideNvrtc(const InsideNvrtc&) = delete;
  InsideNvrtc& operator=(const InsideNvrtc&) = delete;

  // True if compilations should leave because the process ends. Called again and again while NVRTC
  // works: each call moves the wait before the exit functions that NVRTC has registered meanwhile.
  static bool must_leave() noexcept;
};

// The same check without that registration.
bool is_process_ending() noexcept;

}  // namespace gemmery::jit
