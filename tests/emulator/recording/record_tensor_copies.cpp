// SPDX-License-Identifier: Apache-2.0
// Records the results of the tensor copies of tensor_copies.hpp on the first GPU.
//
// record_tensor_copies SET FIRST LAST FILE   SET: all, or the number of a BrokenCopy
//
// Appends to FILE, for each copy from the FIRST on and before the LAST, its number, the number of
// bytes of its result and the result. One that ends the context has none: its length is 2^32 - 1,
// and the program exits with 3; run it again from the next one on (record_tensor_copies.py).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>

#include "tests/emulator/recording/tensor_copies.hpp"

namespace {

using namespace gemmery;
using namespace gemmery::recording;

void write_word(std::ofstream& file, std::uint32_t word) {
  file.write(reinterpret_cast<const char*>(&word), sizeof word);
}

int record(const std::vector<TensorCopy>& copies, std::size_t first, std::size_t last,
           std::ofstream& file) {
  TensorCopyRunner runner(Device::cuda(0));
  for (std::size_t at = first; at < last && at < copies.size(); ++at) {
    write_word(file, static_cast<std::uint32_t>(at));
    try {
      const std::vector<std::byte> result = runner.run(copies[at], at);
      write_word(file, static_cast<std::uint32_t>(result.size()));
      file.write(reinterpret_cast<const char*>(result.data()),
                 static_cast<std::streamsize>(result.size()));
    } catch (const std::exception& error) {
      std::printf("%zu %s\n", at, error.what());
      std::fflush(stdout);
      write_word(file, 0xffffffff);
      file.close();
      std::_Exit(3);  // the context is lost, so its memory cannot be freed
    }
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return std::fputs("usage: record_tensor_copies SET FIRST LAST FILE\n", stderr), 2;
  try {
    const auto copies = std::strcmp(words[1], "all") == 0
                            ? all_tensor_copies()
                            : broken_tensor_copies(static_cast<BrokenCopy>(std::atoi(words[1])));
    std::ofstream file(words[4], std::ios::binary | std::ios::app);
    return record(copies, static_cast<std::size_t>(std::atoi(words[2])),
                  static_cast<std::size_t>(std::atoi(words[3])), file);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
