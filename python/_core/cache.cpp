// SPDX-License-Identifier: Apache-2.0
// The cache of compiled code on disk.
#include <gemmery/cache.hpp>

#include <chrono>

#include "bindings.hpp"

namespace gemmery::python {
namespace {

nb::dict report() {
  const CacheReport cache = without_gil(cache_report);
  nb::dict facts;
  facts["folder"] = cache.folder;
  facts["is_usable"] = cache.is_usable;
  facts["refusal"] = cache.refusal;
  facts["is_read_only"] = cache.is_read_only;
  facts["file_system"] = cache.file_system;
  facts["entries"] = cache.entries;
  facts["bytes"] = cache.bytes;
  facts["most_bytes"] = cache.most_bytes;
  facts["shared"] = cache.shared;
  facts["hits"] = cache.own_counters.hits;
  facts["absent"] = cache.own_counters.absent;
  facts["kept"] = cache.own_counters.kept;
  return facts;
}

nb::list entries() {
  nb::list rows;
  for (const CachedCode& code : without_gil(list_cache)) {
    nb::dict row;
    row["name"] = code.name;
    row["target"] = code.target;
    row["form"] = code.form;
    row["entry"] = code.entry;
    row["bytes"] = code.bytes;
    row["used_at"] =
        std::chrono::duration<double>(code.used_at.time_since_epoch()).count();  // as time.time()
    rows.append(row);
  }
  return rows;
}

nb::tuple removal(const CacheRemoval& removed) {
  return nb::make_tuple(removed.entries, removed.bytes);
}

}  // namespace

void bind_cache(nb::module_& module) {
  module.def("cache_report", &report,
             "The folder of the cache, its contents, and what this process did with it.");
  module.def("list_cache", &entries, "The entries, the most recently used first.");
  module.def(
      "verify_cache",
      [] {
        const CacheCheck check = verify_cache();
        return nb::make_tuple(check.sound, check.faulty);
      },
      "Reads every byte; returns the number of valid entries, and the faults of the others.");
  module.def(
      "prune_cache", [](std::int64_t most_bytes) { return removal(prune_cache(most_bytes)); },
      nb::arg("most_bytes"),
      "Removes the least recently used entries until at most this many bytes remain.");
  module.def(
      "clear_cache", [] { return removal(clear_cache()); }, "Removes everything.");
}

}  // namespace gemmery::python
