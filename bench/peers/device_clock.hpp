// SPDX-License-Identifier: Apache-2.0
// The few driver and NVML calls that a comparison needs: a context for the peer, events, graphs of
// one stream, clocks and power.
#pragma once

#include <functional>
#include <string>

namespace gemmery::peers {

// Opens a library by name, and finds a function in it; throws std::runtime_error that names both if
// it is missing.
void* open_library(std::initializer_list<const char*> names);
void* find_symbol(void* library, const char* name);

// One GPU whose primary context is current in this thread.
class DeviceClock {
 public:
  explicit DeviceClock(int index);

  // Microseconds of device time for the work that `work` enqueues. `record` must have recorded it
  // into a graph before.
  class Recording {
   public:
    Recording(const DeviceClock& clock, void* stream, const std::function<void()>& work);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    // `meanwhile` is called while the device runs.
    double elapsed_us(const std::function<void()>& meanwhile = {}) const;

   private:
    const DeviceClock& clock_;
    void* stream_;
    std::function<void()> work_;
    void* exec_ = nullptr;  // none where the work could not be recorded: then it is put on the
                            // stream each time
  };

 private:
  struct Api;
  const Api* api_;
  void* start_ = nullptr;
  void* end_ = nullptr;
};

// Clocks and power of the board.
struct BoardState {
  unsigned sm_clock_mhz = 0;
  double power_w = 0;
  unsigned temperature_c = 0;
};

// All zeros if NVML is missing.
BoardState read_board(int cuda_index);

}  // namespace gemmery::peers
