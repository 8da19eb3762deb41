// SPDX-License-Identifier: Apache-2.0
// Values of threads that programs may still need when the main thread's have been destroyed: the
// destructors of their static objects run later.
#pragma once

namespace gemmery {

// This thread's value of the type, of which there is one in each thread; once it was destroyed, one
// that is never destroyed.
template <class T>
T& thread_value() {
  static constinit thread_local bool is_destroyed = false;
  struct Holder {
    ~Holder() { is_destroyed = true; }
    T value{};
  };
  if (is_destroyed) {
    static T* const last = new T{};
    return *last;
  }
  thread_local Holder holder;
  return holder.value;
}

}  // namespace gemmery
