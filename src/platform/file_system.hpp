// SPDX-License-Identifier: Apache-2.0
// Whether a folder lies on this machine's own disk or memory.
#pragma once

#include "platform/folder.hpp"

namespace gemmery::platform {

// Known to be local: there a lock holds for every process that can see it, and ends with its
// holder. False for network and user-space file systems, for unknown ones, and where it cannot be
// told.
bool is_on_local_file_system(const Folder& folder);

// "ext4", "nfs", "unknown (0x1234)"; "unknown" where it cannot be told.
std::string file_system_name(const Folder& folder);

}  // namespace gemmery::platform
