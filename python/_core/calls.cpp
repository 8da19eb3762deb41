// SPDX-License-Identifier: Apache-2.0
// Calls that take long: other Python threads run meanwhile, and Ctrl-C ends them.
#include "bindings.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
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

// Ctrl-C for as long as it lives. NVRTC puts a handler of its own in place while its front end
// runs, which ends the process with status 4. So the signal is blocked, here and in threads that
// are made meanwhile, and read from a file. A thread that was there before and does not block it
// could still be given it: as often as is looked, the handler that was there is put back.
class InterruptGuard {
 public:
  InterruptGuard() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    ::sigaction(SIGINT, nullptr, &handler_);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    file_ = ::signalfd(-1, &signals_, SFD_NONBLOCK | SFD_CLOEXEC);
  }
  ~InterruptGuard() {
    restore_handler();
    if (file_ >= 0) ::close(file_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  int file() const noexcept { return file_; }

  void restore_handler() const {
    struct sigaction now {};
    ::sigaction(SIGINT, nullptr, &now);
    if (now.sa_sigaction != handler_.sa_sigaction) ::sigaction(SIGINT, &handler_, nullptr);
  }

  // Hands a signal that came to Python, with the GIL; whether its handler has raised, which stays
  // set.
  bool deliver() const {
    signalfd_siginfo signal{};
    const bool has_come = file_ >= 0 && ::read(file_, &signal, sizeof signal) == sizeof signal;
    const nb::gil_scoped_acquire gil;
    if (has_come) PyErr_SetInterruptEx(SIGINT);
    return PyErr_CheckSignals() != 0;
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
  struct sigaction handler_ {};
  int file_ = -1;
};

// --- a thread of its own for one call ------------------------------------------------------------

class Worker {
 public:
  explicit Worker(const std::function<void(std::stop_token)>& work)
      : ended_(::eventfd(0, EFD_CLOEXEC)), thread_([this, &work](const std::stop_token& stop) {
          try {
            work(stop);
          } catch (...) {
            error_ = std::current_exception();
          }
          const std::uint64_t one = 1;
          has_ended_ = true;
          [[maybe_unused]] const ssize_t written = ::write(ended_, &one, sizeof one);
        }) {}
  ~Worker() {
    stop();
    ::close(ended_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Waits until it has ended or a signal has come, at most one millisecond; whether it has ended.
  bool wait(int signals) const {
    std::array<pollfd, 2> files{pollfd{ended_, POLLIN, 0}, pollfd{signals, POLLIN, 0}};
    ::poll(files.data(), signals < 0 ? 1 : 2, 1);
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
    const InterruptGuard interrupts;
    Worker worker(work);
    while (!is_interrupted && !worker.wait(interrupts.file())) {
      interrupts.restore_handler();
      is_interrupted = interrupts.deliver();
    }
    worker.stop();
    error = worker.error();
    if (!is_interrupted) is_interrupted = interrupts.deliver();
  }
  if (is_interrupted) nb::raise_python_error();
  if (error) std::rethrow_exception(error);
}

bool offer_nvrtc_wheel() {
  const std::string path = find_nvrtc_wheel();
  if (path.empty()) return false;
  ::setenv("GEMMERY_NVRTC_LIBRARY", path.c_str(), 0);
  return true;
}

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
