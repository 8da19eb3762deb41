// SPDX-License-Identifier: Apache-2.0
// Runs PTX text on the machine, without the driver: every parameter is a 64-bit value.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/instruction/image/build_image.hpp"
#include "emulator/machine/launch.hpp"
#include "emulator/program/parser.hpp"

namespace gemmery::emulator {

class PtxRunner {
 public:
  explicit PtxRunner(const std::string& text, const std::string& entry = "run") {
    auto program = std::make_shared<const Program>(parse_ptx(text));
    request.image = build_image(program, entry, place_variables(*program, memory_));
    request.host_threads = 1;
  }

  template <class T>
  std::uint64_t put(const std::vector<T>& values) {
    const std::uint64_t address = reserve(values.size() * sizeof(T));
    EXPECT_TRUE(memory_.copy_in(address, values.data(), values.size() * sizeof(T)));
    return address;
  }
  // Writes all bytes except one.
  void fill_but(std::uint64_t address, std::uint64_t bytes, std::uint64_t left_out) {
    EXPECT_TRUE(memory_.fill(address, 0, left_out));
    EXPECT_TRUE(memory_.fill(address + left_out + 1, 0, bytes - left_out - 1));
  }
  std::uint64_t unwritten(std::uint64_t address, std::uint64_t bytes) const {
    return memory_.count_unwritten(address, bytes);
  }
  std::uint64_t reserve(std::uint64_t bytes) { return memory_.allocate(bytes); }
  template <class T>
  std::vector<T> get(std::uint64_t address, std::size_t count) const {
    std::vector<T> values(count);
    EXPECT_TRUE(memory_.copy_out(values.data(), address, count * sizeof(T)));
    return values;
  }

  LaunchRequest request;  // all but the parameters

  // The fault, if there is one.
  std::optional<Fault> launch(const std::vector<std::uint64_t>& parameters) {
    request.parameters = std::as_bytes(std::span(parameters));
    try {
      run_grid(request, memory_);
      return std::nullopt;
    } catch (const Fault& fault) {
      return fault;
    }
  }

 private:
  GlobalMemory memory_{std::uint64_t{1} << 30};
};

}  // namespace gemmery::emulator
