// SPDX-License-Identifier: Apache-2.0
// Opens a folder into which only its owner can have written: the folder itself and every folder on
// its path are examined by descriptor.
#pragma once

#include <optional>
#include <string>

#include "platform/folder.hpp"

namespace gemmery::platform {

struct FolderPlace {
  std::string path;  // absolute
  // The leading part of the path that must exist. The rest is created if missing, with mode 0700.
  std::string existing = "/";
  bool may_be_made = true;
  Owner owner = Owner::user;
};

struct TrustedFolder {
  std::optional<Folder> folder;
  std::string refusal;  // why it was refused: "/tmp/x may be written by others (mode 0777)"
};

// The folder must belong to `owner` and must not be a symbolic link. The folder and each folder
// above it must belong to the user or to root. None of them may be writable by others, except a
// sticky one above it such as /tmp, nor by a group, except root's and the user's own group, the one
// with the user's number. A symbolic link above it is followed if it belongs to the user or to
// root.
TrustedFolder open_trusted_folder(const FolderPlace& place,
                                  const FileCalls& calls = system_file_calls());

}  // namespace gemmery::platform
