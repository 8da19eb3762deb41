// SPDX-License-Identifier: Apache-2.0
// The table of file systems, by the numbers of statfs(2).
#include "platform/file_system.hpp"

#include <array>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace gemmery::platform {
namespace {

struct FileSystemKind {
  std::uint32_t magic;
  const char* name;
  bool is_local;
};

constexpr std::array kinds{
    FileSystemKind{0xef53, "ext4", true},         FileSystemKind{0x58465342, "xfs", true},
    FileSystemKind{0x9123683e, "btrfs", true},    FileSystemKind{0x01021994, "tmpfs", true},
    FileSystemKind{0x858458f6, "ramfs", true},    FileSystemKind{0x794c7630, "overlayfs", true},
    FileSystemKind{0x2fc12fc1, "zfs", true},      FileSystemKind{0xf2f52010, "f2fs", true},
    FileSystemKind{0xca451a4e, "bcachefs", true}, FileSystemKind{0x3153464a, "jfs", true},
    FileSystemKind{0x52654973, "reiserfs", true}, FileSystemKind{0x73717368, "squashfs", true},
    FileSystemKind{0xe0f5e1e2, "erofs", true},    FileSystemKind{0x6969, "nfs", false},
    FileSystemKind{0x01021997, "9p", false},      FileSystemKind{0x65735546, "fuse", false},
    FileSystemKind{0xff534d42, "cifs", false},    FileSystemKind{0xfe534d42, "smb2", false},
    FileSystemKind{0x517b, "smb", false},         FileSystemKind{0x00c36400, "ceph", false},
    FileSystemKind{0x0bd00bd0, "lustre", false},  FileSystemKind{0x47504653, "gpfs", false},
    FileSystemKind{0x19830326, "beegfs", false},  FileSystemKind{0x01161970, "gfs2", false},
    FileSystemKind{0x7461636f, "ocfs2", false},   FileSystemKind{0x5346414f, "afs", false},
    FileSystemKind{0xaad7aaea, "panfs", false},
};

std::optional<std::uint32_t> magic_of(const Folder& folder) {
  struct statfs facts {};
  const Descriptor& descriptor = folder.descriptor();
  const int known =
      uninterrupted([&] { return descriptor.calls().fstatfs(descriptor.number(), &facts); });
  if (known != 0) return std::nullopt;
  return static_cast<std::uint32_t>(facts.f_type);
}

const FileSystemKind* find_kind(std::uint32_t magic) {
  for (const FileSystemKind& kind : kinds) {
    if (kind.magic == magic) return &kind;
  }
  return nullptr;
}

}  // namespace

bool is_on_local_file_system(const Folder& folder) {
  const std::optional<std::uint32_t> magic = magic_of(folder);
  const FileSystemKind* const kind = magic ? find_kind(*magic) : nullptr;
  return kind != nullptr && kind->is_local;
}

std::string file_system_name(const Folder& folder) {
  const std::optional<std::uint32_t> magic = magic_of(folder);
  if (!magic) return "unknown";
  const FileSystemKind* const kind = find_kind(*magic);
  return kind != nullptr ? kind->name : fmt::format("unknown ({:#x})", *magic);
}

}  // namespace gemmery::platform
