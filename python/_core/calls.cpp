// SPDX-License-Identifier: Apache-2.0
// Long calls: other Python threads run meanwhile, and Ctrl-C ends them.
#include "bindings.hpp"

#include <gemmery/emulator.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <thread>

namespace gemmery::python {
namespace {

// --- signals -------------------------------------------------------------------------------------

// Signals reach Python in its main thread only.
bool is_main_thread() {
  const nb::object threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

// Threads that are created while it exists do not receive SIGINT, which would interrupt their
// system calls.
class InterruptBlocked {
 public:
  InterruptBlocked() {
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before_);
  }
  ~InterruptBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  InterruptBlocked(const InterruptBlocked&) = delete;
  InterruptBlocked& operator=(const InterruptBlocked&) = delete;

 private:
  sigset_t before_{};
};

// Runs Python's handlers for pending signals. True if one raised; its exception remains set.
bool has_handler_raised() {
  const nb::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

// Throws the exception that the handler raised, with the error of the call as its context.
[[noreturn]] void raise_interruption(const std::exception_ptr& error) {
  nb::python_error raised;
  add_context(raised, error);
  raised.restore();
  nb::raise_python_error();
}

// --- a thread of its own for one call ------------------------------------------------------------

class Worker {
 public:
  explicit Worker(const std::function<void(std::stop_token)>& work)
      : ended_(::eventfd(0, EFD_CLOEXEC)) {
    const InterruptBlocked blocked;
    thread_ = std::jthread([this, &work](const std::stop_token& stop) {
      try {
        const EmulatorStopScope scope(stop);
        work(stop);
      } catch (...) {
        error_ = std::current_exception();
      }
      const std::uint64_t one = 1;
      has_ended_ = true;
      [[maybe_unused]] const ssize_t written = ::write(ended_, &one, sizeof one);
    });
  }
  ~Worker() {
    stop();
    ::close(ended_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Waits for the end of `work` or a signal, at most one millisecond. True if `work` has ended.
  bool wait() const {
    pollfd end{ended_, POLLIN, 0};
    ::poll(&end, 1, 1);
    return has_ended_;
  }

  void stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

  std::exception_ptr error() const { return error_; }

 private:
  int ended_;
  std::atomic<bool> has_ended_ = false;
  std::exception_ptr error_;
  std::jthread thread_;  // the last member: it uses the others
};

// --- NVRTC ---------------------------------------------------------------------------------------

// Sets a variable to the path that a function of gemmery._nvrtc finds; false if it finds none.
bool offer_wheel(const char* variable, const char* find) {
  const auto path = nb::cast<std::string>(nb::module_::import_("gemmery._nvrtc").attr(find)());
  return !path.empty() && ::setenv(variable, path.c_str(), 0) == 0;
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
    while (!is_interrupted && !worker.wait()) is_interrupted = has_handler_raised();
    worker.stop();
    error = worker.error();
    if (!is_interrupted) is_interrupted = has_handler_raised();
  }
  if (is_interrupted) raise_interruption(error);
  if (error) std::rethrow_exception(error);
}

void run_on(Device device, const std::function<void()>& work) {
  if (device.type == DeviceType::emulated) {
    run_interruptibly([&](const std::stop_token&) { work(); });
    return;
  }
  const WithoutGil released;
  work();
}

bool offer_nvrtc_wheel() { return offer_wheel("GEMMERY_NVRTC_LIBRARY", "find_library"); }
bool offer_nvdisasm_wheel() { return offer_wheel("GEMMERY_NVDISASM", "find_disassembler"); }

void with_nvrtc(const std::function<void()>& work) {
  try {
    work();
    return;
  } catch (const Error& error) {
    if (!is_missing_nvrtc(error) || !offer_nvrtc_wheel()) throw;
  }
  work();
}

}  // namespace gemmery::python
