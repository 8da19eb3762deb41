// SPDX-License-Identifier: Apache-2.0
// Ctrl-C while NVRTC compiles: the process's own handler of it stays in place.
#pragma once

#include <thread>

namespace gemmery::jit {

// For the time of one compilation. In the first one of a process NVRTC's front end puts a handler
// of SIGINT in place that ends the process with status 4, and takes it away when the front end is
// done (13.0; where SIGINT is ignored it leaves that so). A thread looks every 0.1 ms whether the
// handler is code of NVRTC's library, and then puts back what was there before; a handler that the
// process changes meanwhile is let be. What is left is a signal that comes within that tenth of a
// millisecond. Once the handler has come, or a compilation has ended well, nothing is done any
// more.
class KeptInterruptHandler {
 public:
  // `nvrtc_function` is any function of the library.
  explicit KeptInterruptHandler(const void* nvrtc_function);

  // NVRTC's front end has run.
  static void note_compilation() noexcept;

 private:
  std::jthread watcher_;
};

}  // namespace gemmery::jit
