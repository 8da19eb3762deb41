// SPDX-License-Identifier: Apache-2.0
// One of cuBLASLt's algorithms with its configuration: the design of a kernel. Its identifiers mean
// something in one version of the library only, which therefore is a part of it.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/target.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "providers/cublaslt/library.hpp"

namespace gemmery::cublaslt {

struct Algorithm {
  std::uint16_t id = 0;
  std::uint16_t tile = 0;
  std::uint16_t stages = 0;
  std::int16_t splits = 1;
  std::uint32_t option = 0;
  std::uint16_t inner_shape = 0;
  std::uint16_t cluster_shape = 0;
  std::uint8_t reduction = 0;
  std::uint8_t swizzle = 0;
  std::uint8_t uses_tensor_cores = 0;
  std::uint8_t architecture = 0;  // of the device for which the heuristics gave it
  std::uint8_t major = 0;         // the version of the library
  std::uint8_t minor = 0;
  std::uint8_t patch = 0;
  std::uint8_t unused = 0;

  Version version() const noexcept { return {major, minor, patch}; }
  Target target() const noexcept { return {architecture, 0}; }
  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};
static_assert(sizeof(Algorithm) == DesignBytes::capacity);

// Reads the configuration; nullopt if a value exceeds its field.
std::optional<Algorithm> read_algorithm(const Library& library, const AlgorithmData& data,
                                        Target device);

// Writes the configuration into initialised data of the same id.
void configure(const Library& library, const Algorithm& algorithm, AlgorithmData& data);

std::vector<DesignField> fields_of(const Algorithm& algorithm);

// The name without the suffix of an epilogue, and back.
std::string name_of(const OperandRules& rules, const Algorithm& algorithm);
struct NamedAlgorithm {
  OperandRules rules;
  Algorithm algorithm;
};
std::optional<NamedAlgorithm> parse_name(std::string_view name);

}  // namespace gemmery::cublaslt
