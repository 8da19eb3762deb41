// SPDX-License-Identifier: Apache-2.0
// Converts exceptions to codes of the driver API and keeps their messages.
#include "emulator/outcome.hpp"

#include <gemmery/error.hpp>

#include <array>
#include <new>

#include "core/thread_value.hpp"
#include "emulator/check/fault.hpp"
#include "platform/log.hpp"

namespace gemmery::emulator {
namespace {

struct ResultRow {
  cuda::Result result;
  const char* name;
  const char* words;
};

constexpr std::array result_rows{
    ResultRow{cuda::Result::success, "CUDA_SUCCESS", "no error"},
    ResultRow{cuda::Result::invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    ResultRow{cuda::Result::out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    ResultRow{cuda::Result::not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "cuInit was not called"},
    ResultRow{cuda::Result::no_device, "CUDA_ERROR_NO_DEVICE", "no device"},
    ResultRow{cuda::Result::invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    ResultRow{cuda::Result::invalid_context, "CUDA_ERROR_INVALID_CONTEXT",
              "no context of the device is current"},
    ResultRow{cuda::Result::no_binary_for_gpu, "CUDA_ERROR_NO_BINARY_FOR_GPU",
              "no code that the device runs"},
    ResultRow{cuda::Result::peer_access_unsupported, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
              "no access between these devices"},
    ResultRow{cuda::Result::invalid_ptx, "CUDA_ERROR_INVALID_PTX", "the PTX could not be read"},
    ResultRow{cuda::Result::file_not_found, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    ResultRow{cuda::Result::invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid handle"},
    ResultRow{cuda::Result::illegal_state, "CUDA_ERROR_ILLEGAL_STATE",
              "not in the state that the call needs"},
    ResultRow{cuda::Result::not_found, "CUDA_ERROR_NOT_FOUND", "no such name"},
    ResultRow{cuda::Result::not_supported, "CUDA_ERROR_NOT_SUPPORTED", "not emulated"},
    ResultRow{cuda::Result::not_ready, "CUDA_ERROR_NOT_READY", "not ready"},
    ResultRow{cuda::Result::peer_access_already_enabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
              "peer access is enabled already"},
    ResultRow{cuda::Result::peer_access_not_enabled, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
              "peer access is not enabled"},
    ResultRow{cuda::Result::assert_failed, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    ResultRow{cuda::Result::host_memory_already_registered,
              "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "the memory is registered already"},
    ResultRow{cuda::Result::host_memory_not_registered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
              "the memory is not registered"},
    ResultRow{cuda::Result::cooperative_launch_too_large, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
              "more blocks than the device holds at once"},
    ResultRow{cuda::Result::launch_failed, "CUDA_ERROR_LAUNCH_FAILED", "the kernel was at fault"},
    ResultRow{cuda::Result::stream_capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
              "not permitted while a stream is being captured"},
    ResultRow{cuda::Result::stream_capture_invalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
              "the capture was invalidated by an earlier call"},
    ResultRow{cuda::Result::stream_capture_implicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
              "the legacy stream depends on a stream that is being captured"},
    ResultRow{cuda::Result::stream_capture_wrong_thread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
              "the capture was begun by another thread"},
    ResultRow{cuda::Result::graph_exec_update_failure, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
              "the graph has another form than the instance"},
    ResultRow{cuda::Result::invalid_cluster_size, "CUDA_ERROR_INVALID_CLUSTER_SIZE",
              "invalid cluster size"},
};

const ResultRow* find_row(cuda::Result result) noexcept {
  for (const ResultRow& row : result_rows) {
    if (row.result == result) return &row;
  }
  return nullptr;
}

// The last failure of this thread.
struct LastFailure {
  cuda::Result result = cuda::Result::success;
  std::string words;
};
LastFailure& last_failure() { return thread_value<LastFailure>(); }

cuda::Result note(cuda::Result result, std::string words) {
  last_failure() = {result, std::move(words)};
  return result;
}

cuda::Result result_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return cuda::Result::invalid_value;
    case ErrorKind::unsupported:
      return cuda::Result::not_supported;
    case ErrorKind::out_of_memory:
      return cuda::Result::out_of_memory;
    case ErrorKind::unavailable:
      return cuda::Result::invalid_device;
    case ErrorKind::launch:
      return cuda::Result::launch_failed;
    case ErrorKind::compile:
    case ErrorKind::io:
      break;
  }
  return cuda::Result::unknown;
}

cuda::Result note_fault(const Fault& fault) {
  std::string report = fault.report();
  platform::log(LogLevel::error, report);
  return note(cuda::Result::launch_failed, std::move(report));
}

}  // namespace

cuda::Result note_exception() noexcept {
  try {
    throw;
  } catch (Refusal& refusal) {
    return note(refusal.result, std::move(refusal.words));
  } catch (const Fault& fault) {
    return note_fault(fault);
  } catch (const Error& error) {
    return note(result_of(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return note(cuda::Result::out_of_memory, {});
  } catch (const std::exception& error) {
    return note(cuda::Result::unknown, error.what());
  } catch (...) {
    return note(cuda::Result::unknown, {});
  }
}

const char* name_of(cuda::Result result) noexcept {
  const ResultRow* const row = find_row(result);
  return row == nullptr ? "CUDA_ERROR_UNKNOWN" : row->name;
}

const char* words_of(cuda::Result result) noexcept {
  if (last_failure().result == result && !last_failure().words.empty())
    return last_failure().words.c_str();
  const ResultRow* const row = find_row(result);
  return row == nullptr ? "unknown error" : row->words;
}

}  // namespace gemmery::emulator
