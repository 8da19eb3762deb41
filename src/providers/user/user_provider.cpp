// SPDX-License-Identifier: Apache-2.0
// Adds and removes families with one kernel.
#include "providers/user/user_provider.hpp"

#include <gemmery/error.hpp>

#include <memory>
#include <utility>

#include "kernel/registry.hpp"
#include "providers/user/callable_family.hpp"
#include "providers/user/code_family.hpp"

namespace gemmery::user {
namespace {

std::unique_ptr<Family> make_family(std::unique_ptr<const DeclaredKernel> declared) {
  if (std::holds_alternative<UserCallable>(declared->given().code))
    return std::make_unique<CallableFamily>(std::move(declared));
  return std::make_unique<CodeFamily>(std::move(declared));
}

void refuse_taken_names(const DeclaredKernel& declared) {
  for (const Family* const family : kernel::families()) {
    const bool has_name = family->provider() == "user" && family->name() == declared.given().name;
    if (!has_name && !family->parse_name(declared.kernel_name())) continue;
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "register_kernel: name",
                 .expected = "a name that no registered kernel has",
                 .got = "\"" + declared.given().name + "\" (" + declared.kernel_name() + ")",
                 .hint = "give it another name, or withdraw_kernel the one that has it"});
  }
}

}  // namespace

Kernel add_kernel(UserKernel kernel) {
  auto declared = std::make_unique<const DeclaredKernel>(std::move(kernel));
  refuse_taken_names(*declared);
  const DeclaredKernel& kept = *declared;
  std::unique_ptr<Family> family = make_family(std::move(declared));
  const Kernel made = kept.kernel_of(*family);
  kernel::add_family(std::move(family));  // checks again whether the name is free
  return made;
}

void remove_kernel(const Kernel& kernel) {
  const Family& family = kernel.family();
  const bool is_ours = dynamic_cast<const CodeFamily*>(&family) != nullptr ||
                       dynamic_cast<const CallableFamily*>(&family) != nullptr;
  if (is_ours && kernel::remove_family(family)) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "withdraw_kernel",
               .expected = "a kernel that register_kernel returned and that is still registered",
               .got = kernel.name()});
}

}  // namespace gemmery::user
