// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM while NVRTC compiles: the process's own handlers of them stay in place.
#pragma once

namespace gemmery::jit {

// In the first compilation of a process NVRTC's front end (12.4 to 13.5) puts handlers of SIGINT
// and SIGTERM in place that end the process (status 4 or 0), and when it is done puts back what it
// found by `signal`, which loses flags and masks; in between, SIGINT is ignored for a moment, and
// one that waits for a thread is dropped. Handlers belong to the program. From now on this NVRTC's
// calls of `signal` change nothing, whoever compiles with it. `nvrtc_function` is any function of
// the library; false where the library does not call `signal` by the loader's tables.
bool keep_signal_handlers(const void* nvrtc_function);

}  // namespace gemmery::jit
