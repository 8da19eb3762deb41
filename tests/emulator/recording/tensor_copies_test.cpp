// SPDX-License-Identifier: Apache-2.0
// Runs every recorded tensor copy on the emulator: results equal the hardware's, and there is a
// fault if hardware destroyed the context.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "tests/emulator/recording/tensor_copies.hpp"

namespace gemmery::recording {
namespace {

constexpr const char* recording_path = "tests/data/emulator/tensor_copies.digests";
constexpr Device emulated_h200{DeviceType::emulated, 1};

std::vector<std::uint32_t> read_digests() {
  std::ifstream file(recording_path, std::ios::binary);
  std::vector<std::uint32_t> words;
  for (std::uint32_t word; file.read(reinterpret_cast<char*>(&word), sizeof word);)
    words.push_back(word);
  return words;
}

std::string describe(const TensorCopy& copy, std::size_t number) {
  return std::string(copy.is_store ? "store " : "load ") +
         (copy.map.is_im2col ? "in im2col mode" : "of a tile") + ", number " +
         std::to_string(number) + ", element type " +
         std::to_string(static_cast<int>(copy.map.element));
}

TEST(RecordedTensorCopies, emulator_moves_what_hardware_moved) {
  const std::vector<TensorCopy> legal = all_tensor_copies();
  const std::vector<TensorCopy> strided = broken_tensor_copies(BrokenCopy::stride_of_images);
  const std::vector<std::uint32_t> recorded = read_digests();
  ASSERT_EQ(recorded.size(), legal.size() + strided.size()) << "record again: " << recording_path;
  TensorCopyRunner runner(emulated_h200);
  std::size_t word = 0;
  for (const auto* copies : {&legal, &strided}) {
    for (std::size_t at = 0; at < copies->size(); ++at) {
      EXPECT_EQ(digest(runner.run((*copies)[at], at)), recorded[word++])
          << describe((*copies)[at], at);
    }
  }
}

TEST(RecordedTensorCopies, emulator_refuses_what_hardware_refused) {
  for (const BrokenCopy kind :
       {BrokenCopy::base_pixel_outside, BrokenCopy::wide_offset, BrokenCopy::negative_store,
        BrokenCopy::corners_of_store, BrokenCopy::begins_amid_chunk}) {
    const std::vector<TensorCopy> copies = broken_tensor_copies(kind);
    for (std::size_t at = 0; at < copies.size(); ++at) {
      TensorCopyRunner runner(emulated_h200);
      std::string message;
      try {
        (void)runner.run(copies[at], at);
      } catch (const std::exception& error) {
        message = error.what();
      }
      EXPECT_NE(message.find("a tensor copy "), std::string::npos)
          << "kind " << static_cast<int>(kind) << ", " << describe(copies[at], at) << ": "
          << message;
    }
  }
}

}  // namespace
}  // namespace gemmery::recording
