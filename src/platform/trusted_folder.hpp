// SPDX-License-Identifier: Apache-2.0
// Opens a folder that nobody but its owner can have put anything into: the folder itself and every
// folder on the way to it are examined by descriptor.
#pragma once

#include <optional>
#include <string>

#include "platform/folder.hpp"

namespace gemmery::platform {

struct FolderPlace {
  std::string path;  // absolute
  // The leading part of the path that has to be there; what follows is made where it is missing
  // and may be made, mode 0700.
  std::string existing = "/";
  bool may_be_made = true;
  Owner owner = Owner::user;
};

struct TrustedFolder {
  std::optional<Folder> folder;
  std::string refusal;  // why there is none: "/tmp/x may be written by others (mode 0777)"
};

// The folder must belong to `owner` and may not be a symbolic link. It and each folder above it
// must belong to the user or to root, and must not be writable for others, unless it is above and
// sticky as /tmp is, nor for a group, unless that is the user's own, which has the user's number,
// or root's. A symbolic link above it is followed where it belongs to the user or to root.
TrustedFolder open_trusted_folder(const FolderPlace& place,
                                  const FileCalls& calls = system_file_calls());

}  // namespace gemmery::platform
