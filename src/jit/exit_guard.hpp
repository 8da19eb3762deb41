// SPDX-License-Identifier: Apache-2.0
// A process that ends while another thread is inside NVRTC takes NVRTC's data apart under it: one
// in ten such ends was a segmentation fault or "LLVM ERROR: out of memory" (13.0). Here the end
// waits until the compilation, which is cancelled, has left.
#pragma once

namespace gemmery::jit {

// Held while this thread opens NVRTC or calls it. An end by the main thread is guarded at any
// moment. One by another thread's `exit` is not while the loader opens NVRTC, and not between two
// looks of the first compilation, which sets NVRTC up.
class InsideNvrtc {
 public:
  // Throws Error (unavailable) once the process is ending.
  InsideNvrtc();
  ~InsideNvrtc();
  InsideNvrtc(const InsideNvrtc&) = delete;
  InsideNvrtc& operator=(const InsideNvrtc&) = delete;

  // Whether compilations are to leave because the process ends. To be asked again and again while
  // NVRTC works: each time the wait is put before the ends of what NVRTC has set up meanwhile.
  static bool must_leave() noexcept;
};

// The same without that, for what comes after.
bool is_process_ending() noexcept;

}  // namespace gemmery::jit
