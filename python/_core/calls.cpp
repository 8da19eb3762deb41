// SPDX-License-Identifier: Apache-2.0
// Calls that take long: other Python threads run meanwhile, and Ctrl-C ends them.
#include "bindings.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

namespace gemmery::python {
namespace {

// A person does not notice it, and it costs nothing beside a compilation.
constexpr std::chrono::milliseconds between_looks{20};

// Signals reach Python in its main thread only.
bool is_main_thread() {
  const nb::object threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

// A thread of its own for one call.
class Worker {
 public:
  explicit Worker(const std::function<void(std::stop_token)>& work)
      : thread_([this, &work](const std::stop_token& stop) {
          try {
            work(stop);
          } catch (...) {
            error_ = std::current_exception();
          }
          const std::scoped_lock lock(mutex_);
          has_ended_ = true;
          ended_.notify_all();
        }) {}

  bool wait() {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, between_looks, [this] { return has_ended_; });
  }

  void stop() {
    thread_.request_stop();
    thread_.join();
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::exception_ptr error_;
  std::jthread thread_;  // the last member: it uses the others
};

// Runs the handlers of signals that came; whether one has raised, which stays set.
bool has_been_interrupted() {
  const nb::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

std::string find_nvrtc_wheel() {
  return nb::cast<std::string>(nb::module_::import_("gemmery._nvrtc").attr("find_library")());
}

bool is_missing_nvrtc(const Error& error) {
  return error.kind() == ErrorKind::unavailable && error.operand() == "NVRTC";
}

}  // namespace

void run_interruptibly(const std::function<void(std::stop_token)>& work) {
  if (!is_main_thread()) {
    const WithoutGil released;
    work({});
    return;
  }
  bool is_interrupted = false;
  std::exception_ptr error;
  {
    const WithoutGil released;
    Worker worker(work);
    while (!worker.wait()) {
      is_interrupted = has_been_interrupted();
      if (is_interrupted) break;
    }
    worker.stop();
    try {
      worker.rethrow();
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (is_interrupted) nb::raise_python_error();
  if (error) std::rethrow_exception(error);
}

void with_nvrtc(const std::function<void()>& work) {
  try {
    work();
    return;
  } catch (const Error& error) {
    if (!is_missing_nvrtc(error)) throw;
    const std::string path = find_nvrtc_wheel();
    if (path.empty()) throw;
    ::setenv("GEMMERY_NVRTC_LIBRARY", path.c_str(), 0);
  }
  work();
}

}  // namespace gemmery::python
