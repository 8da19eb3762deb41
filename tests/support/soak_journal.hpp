// SPDX-License-Identifier: Apache-2.0
// The progress of a long test, kept in build/soak/, so that an interrupted test continues where it
// was: with the same seed and the same build of the program.
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
  // Takes up the journal of this name where this very program, with this seed if one is given, left
  // it; begins one otherwise.
  explicit SoakJournal(const std::string& name)
      : path_(std::filesystem::path("build/soak") / (name + ".journal")) {
    if (!resume()) begin();
  }

  std::uint64_t seed() const noexcept { return seed_; }
  bool contains(const std::string& item) const { return done_.contains(item); }
  std::size_t size() const noexcept { return done_.size(); }

  // From any thread; `contains` tells what was there at the beginning.
  void add(const std::string& item) {
    const std::lock_guard lock(writing_);
    file_ << item << std::endl;  // flushed: whoever is stopped has it
  }

  // The next run begins anew.
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
    std::getline(file, line);  // the rest of the first
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
