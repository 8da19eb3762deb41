// SPDX-License-Identifier: Apache-2.0
// Copies of builds for people to look at: a folder per build, with the files of a cache entry. The
// library never reads them.
#pragma once

#include <gemmery/error.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "jit/cache_entry.hpp"
#include "platform/trusted_folder.hpp"

namespace gemmery::jit {

class BuildDump {
 public:
  // Writes into this folder, creates it if missing, and requires that only this user can write into
  // it. Throws Error (io), which names the variable, otherwise.
  explicit BuildDump(std::string path, std::int64_t most_bytes = usual_dump_bytes,
                     const platform::FileCalls& calls = platform::system_file_calls());

  // Replaces an earlier dump of the same build. What cannot be written, or exceeds this process's
  // limit, is logged once.
  void write(const CacheKey& key, const CompiledCode& code) noexcept;
  // Writes the key, the source, and the error in place of the log.
  void write_failure(const CacheKey& key, const Error& error) noexcept;

  static constexpr std::int64_t usual_dump_bytes = std::int64_t{1} << 30;

 private:
  void write_files(const CacheKey& key, const std::string& suffix, const EntryFiles& files);
  void warn_once(const std::string& words) noexcept;

  const platform::FolderPlace place_;
  const std::int64_t most_bytes_;
  const platform::FileCalls& calls_;
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<bool> has_warned_{false};
};

// By GEMMERY_DUMP_DIR; none if it is unset. Throws Error (invalid_argument, io).
std::shared_ptr<BuildDump> environment_dump();

// "gemm_kernel-sm_90a-0123456789abcdef": entry, target and a digest of the whole key.
std::string dump_name(const CacheKey& key);

}  // namespace gemmery::jit
