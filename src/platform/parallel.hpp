// SPDX-License-Identifier: Apache-2.0
// Parallel loops over one process-wide pool of threads; no OpenMP, usable again in a forked child.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace gemmery::platform {

// The threads that a parallel loop uses by default: GEMMERY_NUM_THREADS where it is set, else the
// CPUs that this process may run on. Read once. Throws Error (invalid_argument) where the variable
// is no number from 1 to 4096.
int thread_count();

// The body of a loop, not owned: chunk [begin, end) of its range.
struct LoopBody {
  void (*call)(void* context, std::int64_t begin, std::int64_t end);
  void* context;
};

struct LoopRange {
  std::int64_t count;  // indices 0 … count-1
  std::int64_t grain;  // a chunk has at most this many of them; at least 1
};

// Calls the body for chunks that cover the range exactly once, on at most `threads` threads (0:
// `thread_count()`), the caller's among them; returns when all are done. Chunks start at multiples
// of the grain. Runs in the caller's thread alone when it is inside another parallel loop, or when
// another thread's loop holds the pool. The first exception of a body stops the handing out of
// further chunks and is thrown to the caller.
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
