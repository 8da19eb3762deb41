// SPDX-License-Identifier: Apache-2.0
// A folder for one piece of work that no other user can look into; it goes with the object.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gemmery::platform {

class PrivateFolder {
 public:
  // In TMPDIR where that is an absolute path, else in /tmp; its name begins with `prefix`. Throws
  // Error (io).
  explicit PrivateFolder(std::string_view prefix);
  ~PrivateFolder();  // removes it with all that is in it
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const noexcept { return path_; }

  // A file of this relative name, folders on the way to it made; returns its absolute path. Throws
  // Error (io).
  std::string write(std::string_view name, std::string_view text) const;

  // The bytes of a file in it; nothing where there is none.
  std::optional<std::string> read(std::string_view name) const;

  // Leaves the folder where it is when the object goes.
  void keep() noexcept { is_kept_ = true; }

 private:
  std::string path_;
  bool is_kept_ = false;
};

}  // namespace gemmery::platform
