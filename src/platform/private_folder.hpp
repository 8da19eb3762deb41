// SPDX-License-Identifier: Apache-2.0
// A temporary folder that no other user can look into; removed with the object.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gemmery::platform {

class PrivateFolder {
 public:
  // Created in TMPDIR if that is an absolute path, else in /tmp; its name begins with `prefix`.
  // Throws Error (io).
  explicit PrivateFolder(std::string_view prefix);
  ~PrivateFolder();  // removes the folder and its contents
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const noexcept { return path_; }

  // Writes a file with this relative name and creates the folders on its path; returns its absolute
  // path. Throws Error (io).
  std::string write(std::string_view name, std::string_view text) const;

  // The bytes of a file in the folder; nothing if it does not exist.
  std::optional<std::string> read(std::string_view name) const;

  // The folder stays when the object is destroyed.
  void keep() noexcept { is_kept_ = true; }

 private:
  std::string path_;
  bool is_kept_ = false;
};

}  // namespace gemmery::platform
