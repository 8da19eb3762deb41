// SPDX-License-Identifier: Apache-2.0
// The progress of a long test, kept in build/soak/, so that an interrupted test can be continued
// with the same seed and the same build of the program.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <string>

#include "tests/support/random_seed.hpp"

namespace gemmery::tests {

class SoakJournal {
 public:
  // Continues the journal of this name if the same program wrote it, with the same seed if one is
  // given; otherwise begins a new one.
  explicit SoakJournal(const std::string& name)
      : path_(std::filesystem::path("build/soak") / (name + ".journal")) {
    if (!resume()) begin();
  }

  std::uint64_t seed() const noexcept { return seed_; }
  bool contains(const std::string& item) const { return done_.contains(item); }
  std::size_t size() const noexcept { return done_.size(); }

  // Thread-safe. `contains` refers to the items that existed at the beginning.
  void add(const std::string& item) {
    const std::lock_guard lock(writing_);
    file_ << item << std::endl;  // flushed, so that an interrupted run keeps it
  }

  // The next run begins a new journal.
  void finish() {
    file_.close();
    std::filesystem::remove(path_);
  }

 private:
  static std::string own_digest() {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return std::to_string(XXH3_64bits(bytes.data(), bytes.size()));
  }

  bool resume() {
    std::ifstream file(path_);
    std::string digest;
    std::string line;
    if (!(file >> digest >> seed_) || digest != own_digest()) return false;
    if (std::getenv("GEMMERY_TEST_SEED") != nullptr && seed_ != random_seed()) return false;
    std::getline(file, line);  // the rest of the first line
    while (std::getline(file, line)) done_.insert(line);
    file_.open(path_, std::ios::app);
    return true;
  }

  void begin() {
    seed_ = random_seed();
    std::filesystem::create_directories(path_.parent_path());
    file_.open(path_);
    file_ << own_digest() << ' ' << seed_ << std::endl;
  }

  std::filesystem::path path_;
  std::uint64_t seed_ = 0;
  std::set<std::string> done_;
  std::mutex writing_;
  std::ofstream file_;
};

}  // namespace gemmery::tests
