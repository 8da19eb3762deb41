// SPDX-License-Identifier: Apache-2.0
// Passes the library's messages to Python's logging. They come from any thread, some with locks
// held, so they are queued until Python's main thread handles them.
#include <gemmery/log.hpp>

#include <deque>
#include <mutex>
#include <utility>

#include "bindings.hpp"

namespace gemmery::python {
namespace {

struct Message {
  LogLevel level;
  std::string text;
};

// Never destroyed: threads of the library may outlive the interpreter.
struct Waiting {
  std::mutex mutex;
  std::deque<Message> messages;
  bool is_called = false;  // Python has been asked to call `deliver`
  PyObject* receiver = nullptr;
};

Waiting& waiting() {
  static auto* const instance = new Waiting;
  return *instance;
}

// The limit of queued messages; further ones are dropped.
constexpr std::size_t most_waiting = 1000;

// Runs in Python's main thread, with the GIL.
int deliver(void*) {
  std::deque<Message> messages;
  nb::object receiver;
  {
    const std::scoped_lock lock(waiting().mutex);
    messages.swap(waiting().messages);
    waiting().is_called = false;
    receiver = nb::borrow(waiting().receiver);
  }
  if (!receiver.is_valid()) return 0;
  for (const Message& message : messages) {
    try {
      receiver(static_cast<int>(message.level), message.text);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("gemmery's log");
    }
  }
  return 0;
}

void keep(LogLevel level, std::string_view text) {
  const std::scoped_lock lock(waiting().mutex);
  if (waiting().messages.size() == most_waiting) return;
  waiting().messages.push_back({level, std::string(text)});
  if (!waiting().is_called) waiting().is_called = Py_AddPendingCall(deliver, nullptr) == 0;
}

LogLevel to_level(int level) {
  if (level >= 40) return LogLevel::error;
  if (level >= 30) return LogLevel::warning;
  return level >= 20 ? LogLevel::info : LogLevel::debug;
}

void forward_logs(nb::handle receiver, int level) {
  if (receiver.is_none()) set_log_sink({});
  PyObject* before = nullptr;
  {
    const std::scoped_lock lock(waiting().mutex);
    PyObject* const given = receiver.is_none() ? nullptr : receiver.inc_ref().ptr();
    before = std::exchange(waiting().receiver, given);
  }
  Py_XDECREF(before);
  if (!receiver.is_none()) set_log_sink(keep, to_level(level));
}

}  // namespace

void bind_log(nb::module_& module) {
  module.def("forward_logs", &forward_logs, nb::arg("receiver").none(), nb::arg("level") = 30,
             "Calls receiver(level, text) in the main thread for every message of the library at "
             "or above a level of Python's logging; None stops this.");
}

}  // namespace gemmery::python
