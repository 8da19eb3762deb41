// SPDX-License-Identifier: Apache-2.0
// Metadata as JSON without intermediate records: the list of all kernels has half a million lines.
#pragma once

#include <string>
#include <vector>

#include <gemmery/kernel.hpp>

namespace gemmery::cli {

// Writes the same line as `to_record(metadata).dump()`. Text shared by consecutive kernels is
// written once and copied.
class MetadataJson {
 public:
  // Valid until the next call.
  const std::string& write(const Kernel& kernel);

 private:
  const std::string& targets_text(std::vector<Target> targets);
  const std::string& epilogue_text(EpilogueId epilogue);

  std::string line_;
  std::vector<Target> targets_;
  std::string targets_text_;
  EpilogueId epilogue_ = default_epilogue;
  std::string epilogue_text_;
};

}  // namespace gemmery::cli
