// SPDX-License-Identifier: Apache-2.0
// The emulator computes the bits that an H200 was recorded to compute
// (tests/data/emulator/README.md).
#include <gtest/gtest.h>

#include <fstream>

#include "tests/emulator/recording/matrix_forms.hpp"

namespace gemmery::recording {
namespace {

constexpr const char* recording_path = "tests/data/emulator/matrix_forms.digests";

TEST(RecordedMatrixForms, are_computed_as_on_hardware) {
  std::ifstream file(recording_path, std::ios::binary);
  ASSERT_TRUE(file) << "run from the root of the tree";
  const Device device = *parse_device("emulated:h200");
  for (const MatrixForm& form : all_matrix_forms()) {
    const std::vector<std::uint32_t> digests = run_matrix_form(form, device);
    std::vector<std::uint32_t> recorded(digests.size());
    file.read(reinterpret_cast<char*>(recorded.data()),
              static_cast<std::streamsize>(4 * recorded.size()));
    ASSERT_TRUE(file) << form.name << ": " << recording_path << " is too short; record again";
    for (std::size_t at = 0; at < digests.size(); ++at)
      EXPECT_EQ(digests[at], recorded[at]) << form.name << ", case " << at;
  }
}

}  // namespace
}  // namespace gemmery::recording
