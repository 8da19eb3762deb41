// SPDX-License-Identifier: Apache-2.0
// Folders by mkdtemp: mode 0700, unpredictable names.
#include "platform/private_folder.hpp"

#include <gemmery/error.hpp>

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "platform/environment.hpp"

namespace gemmery::platform {
namespace {

[[noreturn]] void throw_io(const std::string& path, const char* expected) {
  throw Error({.kind = ErrorKind::io,
               .operand = path,
               .expected = expected,
               .got = std::strerror(errno),
               .hint = "TMPDIR says where temporary folders are made"});
}

std::string parent_folder() {
  const std::optional<std::string> named = read_environment("TMPDIR");
  return named && named->starts_with('/') ? *named : "/tmp";
}

}  // namespace

PrivateFolder::PrivateFolder(std::string_view prefix)
    : path_(parent_folder() + "/" + std::string(prefix) + "-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) throw_io(path_, "a temporary folder");
}

PrivateFolder::~PrivateFolder() {
  if (is_kept_) return;
  std::error_code ignored;  // files that cannot be removed are left to the system's cleaning
  std::filesystem::remove_all(path_, ignored);
}

std::string PrivateFolder::write(std::string_view name, std::string_view text) const {
  const std::filesystem::path path = std::filesystem::path(path_) / name;
  std::error_code failure;
  std::filesystem::create_directories(path.parent_path(), failure);
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) throw_io(path.string(), "a file that can be written");
  return path.string();
}

std::optional<std::string> PrivateFolder::read(std::string_view name) const {
  std::ifstream file(std::filesystem::path(path_) / name, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace gemmery::platform
