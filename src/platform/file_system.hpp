// SPDX-License-Identifier: Apache-2.0
// Whether a folder lies on this machine's own disk or memory.
#pragma once

#include "platform/folder.hpp"

namespace gemmery::platform {

// True if known to be local: a lock there holds for every process that can see the folder, and ends
// with its holder. False for network and user-space file systems and for unknown ones.
bool is_on_local_file_system(const Folder& folder);

// "ext4", "nfs", "unknown (0x1234)"; "unknown" if the system does not tell.
std::string file_system_name(const Folder& folder);

}  // namespace gemmery::platform
