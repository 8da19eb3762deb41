// SPDX-License-Identifier: Apache-2.0
// The base class of all families in this room: the provider, a table of targets, and kernels with
// exactly one name.
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

  // All programs except those with a reduction over no elements.
  Status carries(const GemmProblem& problem) const override;
  std::optional<Kernel> parse_name(std::string_view kernel_name) const final;

 protected:
  // The referenced objects live as long as the process.
  struct Facts {
    std::string_view name;
    int version;
    std::span<const Target> targets;  // ascending
  };
  explicit TemplateFamily(const Facts& facts) : facts_(facts) {}

  // The kernel that a text spells, whether or not the text is its canonical name.
  virtual std::optional<Kernel> read_name(std::string_view text) const = 0;

  // A reason with the family's name and the failed constraint; the caller fills in the rest.
  Reason reason_of(std::string failed) const;

 private:
  Facts facts_;
};

}  // namespace gemmery::templates
