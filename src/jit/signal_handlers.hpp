// SPDX-License-Identifier: Apache-2.0
// Keeps the process's own handlers of SIGINT and SIGTERM in place while NVRTC compiles.
#pragma once

namespace gemmery::jit {

// In the first compilation of a process NVRTC's front end (12.4 to 13.5) installs handlers of
// SIGINT and SIGTERM that end the process (status 4 or 0). Afterwards it restores the previous ones
// by `signal`, which loses flags and masks. In between SIGINT is ignored for a moment, and a
// pending one is dropped. Handlers belong to the program, so from now on this NVRTC's calls of
// `signal` change nothing, whoever compiles with it. `nvrtc_function` is any function of the
// library. False if the library does not call `signal` through the loader's tables.
bool keep_signal_handlers(const void* nvrtc_function);

}  // namespace gemmery::jit
