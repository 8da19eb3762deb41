// SPDX-License-Identifier: Apache-2.0
// What the families of this room have in common: their provider, a table of targets, kernels with
// one spelling of their names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/device_family.hpp"

namespace gemmery::templates {

class TemplateFamily : public runtime::DeviceFamily {
 public:
  std::string_view provider() const noexcept final { return "templates"; }
  std::string_view name() const noexcept final { return facts_.name; }
  int version() const noexcept final { return facts_.version; }
  std::span<const Target> target_table(const Kernel&) const noexcept override {
    return facts_.targets;
  }

  // Programs whose reductions are of something.
  Status carries(const GemmProblem& problem) const override;
  std::optional<Kernel> parse_name(std::string_view kernel_name) const final;

 protected:
  // They live as long as the process.
  struct Facts {
    std::string_view name;
    int version;
    std::span<const Target> targets;  // ascending
  };
  explicit TemplateFamily(const Facts& facts) : facts_(facts) {}

  // The kernel that a text spells, whether or not that is how its name is written.
  virtual std::optional<Kernel> read_name(std::string_view text) const = 0;

  // A reason to begin with: whose it is and what failed.
  Reason reason_of(std::string failed) const;

 private:
  Facts facts_;
};

}  // namespace gemmery::templates
