// SPDX-License-Identifier: Apache-2.0
// The scratch memory of one run: the caller's, or memory from the library's pool.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/kernel.hpp>

#include <cstddef>
#include <optional>

namespace gemmery::runtime {

// The alignment of every workspace, in bytes.
inline constexpr std::size_t workspace_alignment = 256;

// Memory from the pool is returned in stream order.
class RunWorkspace {
 public:
  // Throws Error: invalid_argument for a caller's workspace that is too small or misaligned,
  // unsupported if the pool would have to serve a stream that is being captured.
  RunWorkspace(const Kernel& kernel, const RunOptions& options, std::size_t bytes);

  void* data() const noexcept { return data_; }

 private:
  std::optional<Buffer> own_;
  void* data_ = nullptr;
};

}  // namespace gemmery::runtime
