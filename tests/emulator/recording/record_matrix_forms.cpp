// SPDX-License-Identifier: Apache-2.0
// record_matrix_forms FILE: runs the forms of matrix_forms.hpp on the first GPU and writes a digest
// of each case to FILE. With a device's name behind it, on that device.
#include <cstdio>
#include <exception>
#include <fstream>

#include "tests/emulator/recording/matrix_forms.hpp"

int main(int count, char** words) {
  using namespace gemmery;
  if (count != 2 && count != 3)
    return std::fputs("usage: record_matrix_forms FILE [DEVICE]\n", stderr), 2;
  try {
    const Device device = count == 3 ? parse_device(words[2]).value() : Device::cuda(0);
    std::ofstream file(words[1], std::ios::binary);
    for (const recording::MatrixForm& form : recording::all_matrix_forms()) {
      const auto digests = recording::run_matrix_form(form, device);
      file.write(reinterpret_cast<const char*>(digests.data()),
                 static_cast<std::streamsize>(4 * digests.size()));
      std::printf("%s\n", form.name.c_str());
    }
    return file.good() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
