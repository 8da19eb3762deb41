// SPDX-License-Identifier: Apache-2.0
// record_instructions FILE: runs every form on the first GPU and writes the results to FILE.
#include <cstdio>
#include <ctime>

#include "driver/driver.hpp"
#include "tests/emulator/recording/forms.hpp"

int main(int count, char** words) {
  using namespace gemmery;
  if (count != 2) {
    std::fputs("usage: record_instructions FILE\n", stderr);
    return 2;
  }
  try {
    const Device device = Device::cuda(0);
    const std::vector<recording::Form> forms = recording::all_forms();
    const auto results = recording::run_forms(forms, device);
    const std::time_t now = std::time(nullptr);
    char date[16];
    std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
    recording::write_recording(words[1],
                               driver::open_device(device).info().name + ", driver for CUDA " +
                                   std::to_string(driver::driver_for(device).version()) + ", " +
                                   date,
                               forms, results);
    std::printf("%zu forms, %u cases each\n", forms.size(), recording::cases_per_form);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
