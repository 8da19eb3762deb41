// SPDX-License-Identifier: Apache-2.0
// The few driver and NVML calls that a comparison needs: the context for the peer, events, graphs
// of one stream, clocks and power.
#pragma once

#include <functional>
#include <string>

namespace gemmery::peers {

// A function of a library that was opened by name; throws std::runtime_error naming both where it
// is not there.
void* open_library(std::initializer_list<const char*> names);
void* find_symbol(void* library, const char* name);

// One GPU, its primary context current in this thread.
class DeviceClock {
 public:
  explicit DeviceClock(int index);

  // Microseconds that the device took for what `work` puts on the stream; work is recorded into a
  // graph by `record` before.
  class Recording {
   public:
    Recording(const DeviceClock& clock, void* stream, const std::function<void()>& work);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    // `meanwhile` is called while the device is at it.
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

// What the board was doing.
struct BoardState {
  unsigned sm_clock_mhz = 0;
  double power_w = 0;
  unsigned temperature_c = 0;
};

// All zeros where NVML is not there.
BoardState read_board(int cuda_index);

}  // namespace gemmery::peers
