// SPDX-License-Identifier: Apache-2.0
// Checks the caller's memory, or allocates from the pool.
#include "runtime/run_workspace.hpp"

#include <gemmery/error.hpp>

#include <cstdint>
#include <string>

#include "driver/driver.hpp"
#include "driver/stream.hpp"

namespace gemmery::runtime {
namespace {

void refuse_pool_in_capture(const Kernel& kernel, std::size_t bytes, Stream stream) {
  if (stream.device().is_cpu() ||
      !driver::is_capturing(driver::open_device(stream.device()), stream))
    return;
  throw Error(
      {.kind = ErrorKind::unsupported,
       .operand = kernel.name(),
       .expected =
           "a workspace of " + std::to_string(bytes) + " bytes, while the stream is being captured",
       .got = "none",
       .hint =
           "pass a workspace, or reserve one by artifact.bind(args) before the capture begins"});
}

void check_workspace(const Workspace& workspace, std::size_t bytes) {
  if (workspace.bytes < bytes) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "workspace",
                 .expected = "at least " + std::to_string(bytes) + " bytes",
                 .got = std::to_string(workspace.bytes),
                 .hint = "get_workspace_size(args) returns the size"});
  }
  if (reinterpret_cast<std::uintptr_t>(workspace.data) % workspace_alignment != 0) {
    throw Error(
        {.kind = ErrorKind::invalid_argument,
         .operand = "workspace",
         .expected = "an address that is a multiple of " + std::to_string(workspace_alignment),
         .got = std::to_string(reinterpret_cast<std::uintptr_t>(workspace.data))});
  }
}

}  // namespace

RunWorkspace::RunWorkspace(const Kernel& kernel, const RunOptions& options, std::size_t bytes) {
  if (bytes == 0) return;
  if (options.workspace.data != nullptr || options.workspace.bytes != 0) {
    check_workspace(options.workspace, bytes);
    data_ = options.workspace.data;
    return;
  }
  refuse_pool_in_capture(kernel, bytes, options.stream);
  own_.emplace(bytes, options.stream);
  data_ = own_->data();
}

}  // namespace gemmery::runtime
