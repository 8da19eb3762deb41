// SPDX-License-Identifier: Apache-2.0
// Parallel loops over one process-wide thread pool; no OpenMP, usable again in a forked child.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace gemmery::platform {

// The number of threads of a parallel loop by default: GEMMERY_NUM_THREADS if set, else the number
// of CPUs that this process may run on. Read once. Throws Error (invalid_argument) if the variable
// is not a number from 1 to 4096.
int thread_count();

// The body of a loop, not owned; called with chunk [begin, end) of the range.
struct LoopBody {
  void (*call)(void* context, std::int64_t begin, std::int64_t end);
  void* context;
};

struct LoopRange {
  std::int64_t count;  // indices 0 … count-1
  std::int64_t grain;  // the most indices in a chunk; at least 1
};

// Calls the body for chunks that cover the range exactly once, on at most `threads` threads (0:
// `thread_count()`), including the caller's. Returns when all are done. Chunks start at multiples
// of the grain. Runs in the caller's thread alone inside another parallel loop, or while another
// thread's loop holds the pool. After the first exception of a body no further chunks start, and
// the exception is thrown to the caller.
void run_parallel(LoopRange range, LoopBody body, int threads = 0);

// The same for a callable `body(begin, end)`.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body&& body, int threads = 0) {
  using Callable = std::remove_reference_t<Body>;
  const auto call = [](void* context, std::int64_t begin, std::int64_t end) {
    (*static_cast<Callable*>(context))(begin, end);
  };
  void* context = const_cast<void*>(static_cast<const void*>(std::addressof(body)));
  run_parallel({count, grain}, {call, context}, threads);
}

// True in the body of a loop that several threads run.
bool is_inside_parallel_loop() noexcept;

}  // namespace gemmery::platform
