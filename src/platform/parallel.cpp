// SPDX-License-Identifier: Apache-2.0
// The thread pool behind `run_parallel`. It is never destroyed: threads that outlive main() must
// not access destroyed state.
#include "platform/parallel.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "platform/environment.hpp"
#include "platform/float_mode.hpp"

namespace gemmery::platform {
namespace {

constexpr int most_threads = 4096;

thread_local bool inside_loop = false;

struct InsideLoop {
  InsideLoop() { inside_loop = true; }
  ~InsideLoop() { inside_loop = false; }
  InsideLoop(const InsideLoop&) = delete;
  InsideLoop& operator=(const InsideLoop&) = delete;
};

int count_usable_cpus() {
  // sched_getaffinity fails on machines with more CPUs than cpu_set_t has bits;
  // hardware_concurrency is as good an estimate then.
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return std::max(1, CPU_COUNT(&cpus));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int choose_thread_count() {
  const auto wanted = read_environment_integer("GEMMERY_NUM_THREADS", 1, most_threads);
  if (wanted) return static_cast<int>(*wanted);
  return std::min(most_threads, count_usable_cpus());
}

// One loop in progress. It lives on the caller's stack; `Pool` makes workers leave it before the
// caller returns.
struct Loop {
  LoopRange range;
  LoopBody body;
  int free_seats;  // workers that may still join; guarded by the pool's mutex
  std::atomic<std::int64_t> next{0};
  std::once_flag first_failure{};
  std::exception_ptr failure{};

  void run_chunks() noexcept {
    const InsideLoop guard;
    for (;;) {
      const std::int64_t begin = next.fetch_add(range.grain, std::memory_order_relaxed);
      if (begin >= range.count) return;
      try {
        body.call(body.context, begin, std::min(range.count, begin + range.grain));
      } catch (...) {
        std::call_once(first_failure, [this] { failure = std::current_exception(); });
        next.store(range.count, std::memory_order_relaxed);
      }
    }
  }
};

// Signals sent to the process are for its own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

class Pool {
 public:
  // Runs the loop with up to `workers` threads beside the caller's. Returns false and does nothing
  // while another loop runs.
  bool try_run(Loop& loop, int workers);

 private:
  void hire(int workers);
  void work(const std::stop_token& stop);

  std::mutex one_loop_;  // held by the caller of the loop in progress
  std::mutex mutex_;     // guards the members below
  std::condition_variable_any loop_offered_;
  std::condition_variable loop_left_;
  Loop* loop_ = nullptr;
  int busy_ = 0;
  std::vector<std::jthread> threads_;
};

// Null until the first loop of this process. A forked child starts with a new pool, without the
// parent's threads and locks.
std::atomic<Pool*> current_pool{nullptr};
std::atomic<unsigned> fork_generation{0};

void forget_pool_in_child() {
  fork_generation.fetch_add(1, std::memory_order_relaxed);
  current_pool.store(nullptr, std::memory_order_relaxed);
}

Pool& pool() {
  Pool* found = current_pool.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  static const int registered = pthread_atfork(nullptr, nullptr, forget_pool_in_child);
  static_cast<void>(registered);
  auto made = std::make_unique<Pool>();  // starts no thread yet, so losing the race below is cheap
  if (current_pool.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel))
    return *made.release();
  return *found;
}

void Pool::hire(int workers) {
  const SignalsBlocked guard;
  while (static_cast<int>(threads_.size()) < workers)
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

void Pool::work(const std::stop_token& stop) {
  const DefaultFloatMode mode;  // not the mode of the thread that happened to start the first loop
  std::unique_lock lock(mutex_);
  const auto can_join = [this] { return loop_ != nullptr && loop_->free_seats > 0; };
  while (loop_offered_.wait(lock, stop, can_join)) {
    Loop& joined = *loop_;
    --joined.free_seats;
    ++busy_;
    lock.unlock();
    joined.run_chunks();
    lock.lock();
    if (--busy_ == 0) loop_left_.notify_one();
  }
}

bool Pool::try_run(Loop& loop, int workers) {
  const std::unique_lock alone(one_loop_, std::try_to_lock);
  if (!alone) return false;
  const unsigned generation = fork_generation.load(std::memory_order_relaxed);
  {
    const std::scoped_lock lock(mutex_);
    // If threads cannot be started (a limit of the system), the caller does all the work.
    try {
      hire(workers);
    } catch (const std::exception&) {
    }
    loop.free_seats = workers;
    loop_ = &loop;
  }
  loop_offered_.notify_all();
  loop.run_chunks();
  // If the body forks, the child returns here too; it has no workers to wait for.
  if (fork_generation.load(std::memory_order_relaxed) != generation) return true;
  std::unique_lock lock(mutex_);
  loop_ = nullptr;
  loop_left_.wait(lock, [this] { return busy_ == 0; });
  return true;
}

void run_inline(LoopRange range, LoopBody body) {
  for (std::int64_t begin = 0; begin < range.count; begin += range.grain)
    body.call(body.context, begin, std::min(range.count, begin + range.grain));
}

}  // namespace

int thread_count() {
  static const int count = choose_thread_count();
  return count;
}

bool is_inside_parallel_loop() noexcept { return inside_loop; }

void run_parallel(LoopRange range, LoopBody body, int threads) {
  range.grain = std::max<std::int64_t>(1, range.grain);
  if (range.count <= 0) return;
  const std::int64_t chunks = (range.count - 1) / range.grain + 1;
  const int wanted = std::min(threads > 0 ? threads : thread_count(), most_threads);
  const int workers = static_cast<int>(std::min<std::int64_t>(wanted, chunks)) - 1;
  if (workers < 1 || inside_loop) return run_inline(range, body);
  Loop loop{.range = range, .body = body, .free_seats = 0};
  if (!pool().try_run(loop, workers)) return run_inline(range, body);
  if (loop.failure) std::rethrow_exception(loop.failure);
}

}  // namespace gemmery::platform
