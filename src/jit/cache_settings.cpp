// SPDX-License-Identifier: Apache-2.0
// Determines the cache's folder by the rules of docs/cache.md.
#include "jit/cache_settings.hpp"

#include <gemmery/error.hpp>

#include <limits>
#include <string_view>

#include "platform/environment.hpp"

namespace gemmery::jit {
namespace {

constexpr const char* shared_variable = "GEMMERY_CACHE_SHARED";

bool is_absolute(const std::optional<std::string>& path) { return path && path->starts_with('/'); }

void choose_own_place(CacheSettings& settings) {
  if (const auto folder = platform::read_environment_path("GEMMERY_CACHE_DIR")) {
    settings.own = {.path = *folder};
    return;
  }
  if (const auto folder = platform::read_environment("XDG_CACHE_HOME"); is_absolute(folder)) {
    settings.own = {.path = *folder + "/gemmery"};
    return;
  }
  const std::optional<std::string> home = platform::read_environment("HOME");
  if (!is_absolute(home)) {
    settings.why_none = "HOME is no absolute path; GEMMERY_CACHE_DIR can name a folder";
    return;
  }
  settings.own = {.path = *home + "/.cache/gemmery", .existing = *home};
}

[[noreturn]] void refuse_shared(std::string_view folder) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = shared_variable,
               .expected = "absolute paths with ':' between them",
               .got = "\"" + std::string(folder) + "\"",
               .hint = "unset the environment variable or correct it"});
}

std::vector<std::string> read_shared_places() {
  std::vector<std::string> folders;
  const std::string list = platform::read_environment(shared_variable).value_or("");
  for (std::string_view rest = list; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view folder = rest.substr(0, end);
    if (!folder.starts_with('/')) refuse_shared(folder);
    folders.emplace_back(folder);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return folders;
}

}  // namespace

CacheSettings read_cache_settings() {
  CacheSettings settings;
  choose_own_place(settings);
  settings.shared = read_shared_places();
  settings.is_read_only = platform::read_environment_flag("GEMMERY_CACHE_READONLY");
  settings.most_bytes = platform::read_environment_integer("GEMMERY_CACHE_MAX_BYTES", 0,
                                                           std::numeric_limits<std::int64_t>::max())
                            .value_or(usual_cache_bytes);
  if (settings.own) {
    settings.own->may_be_made = !settings.is_read_only;
    if (settings.is_read_only) settings.own->owner = platform::Owner::user_or_root;
  }
  return settings;
}

}  // namespace gemmery::jit
