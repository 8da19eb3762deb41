// SPDX-License-Identifier: Apache-2.0
// Numbers and addresses of one call. Work is enqueued with the capture mode relaxed, since a kernel
// of cuBLASLt is loaded by the driver when it is launched first.
#include "providers/cublaslt/launch.hpp"

#include <gemmery/error.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/number.hpp"
#include "driver/stream.hpp"
#include "kernel/codeless.hpp"
#include "kernel/rules.hpp"

namespace gemmery::cublaslt {
namespace {

// --- numbers ------------------------------------------------------------------------------------

double number_of(const GemmArguments& arguments, int operand) {
  return std::get<double>(arguments.epilogue_operands()[static_cast<std::size_t>(operand)].value);
}

double value_of(const Factor& factor, const GemmArguments& arguments) {
  return factor.number == no_operand ? factor.constant
                                     : factor.constant * number_of(arguments, factor.number);
}

struct Numbers {
  double alpha = 1;
  double beta = 0;
};

Numbers numbers_of(const Product& product, const GemmArguments& arguments) {
  const EpilogueForm& form = product.epilogue;
  if (form.is_default) return {arguments.alpha(), product.has_c ? arguments.beta() : 0};
  return {value_of(form.alpha, arguments), product.has_c ? value_of(form.beta, arguments) : 0};
}

// A number in the type that cuBLASLt scales with.
struct Scalar {
  alignas(8) std::array<std::byte, 8> bytes{};

  Scalar(DataType type, double value) {
    if (type == DataType::f64) hold(value);
    if (type == DataType::f32) hold(static_cast<float>(value));
    if (type == DataType::i32) hold(static_cast<std::int32_t>(value));
    if (type == DataType::f16)
      hold(static_cast<std::uint16_t>(number::encode(number::float_format(DType::float16), value)));
  }

 private:
  template <class Value>
  void hold(Value value) {
    std::memcpy(bytes.data(), &value, sizeof value);
  }
};

// --- addresses ----------------------------------------------------------------------------------

void* address_of(const GemmArguments& arguments, int operand) {
  return std::get<Tensor>(arguments.epilogue_operands()[static_cast<std::size_t>(operand)].value)
      .data();
}

Addresses addresses_of(const Product& product, const GemmArguments& arguments) {
  Addresses addresses;
  if (product.first_scale.operand != no_operand)
    addresses.first_scale = address_of(arguments, product.first_scale.operand);
  if (product.second_scale.operand != no_operand)
    addresses.second_scale = address_of(arguments, product.second_scale.operand);
  if (product.bias.operand != no_operand)
    addresses.bias = address_of(arguments, product.bias.operand);
  return addresses;
}

bool has_attachments(const Product& product) {
  return product.bias.operand != no_operand || product.first_scale.operand != no_operand;
}

const void* address_of_c(const Product& product, const GemmArguments& arguments) {
  if (!product.has_c) return arguments.out().data();  // not read
  if (product.epilogue.is_default) return arguments.c()->data();
  return address_of(arguments, product.epilogue.c);
}

// cuBLASLt says "internal error" of a stream that belongs to another device.
[[noreturn]] void refuse_launch(const Kernel& kernel, const Library& library, Result result,
                                Stream stream) {
  throw Error(
      {.kind = result == Result::alloc_failed ? ErrorKind::out_of_memory : ErrorKind::launch,
       .operand = kernel.name(),
       .expected = "success of cublasLtMatmul",
       .got = describe(library, result),
       .hint = fmt::format("a stream that is given as a bare handle must be one of {}",
                           to_string(stream.device()))});
}

// --- prepared launches --------------------------------------------------------------------------

class LtLaunch final : public kernel::CodelessLaunch {
 public:
  LtLaunch(const Kernel& kernel, Plan plan, const GemmArguments& arguments,
           std::size_t workspace_bytes)
      : CodelessLaunch(arguments),
        kernel_(kernel),
        plan_(std::move(plan)),
        operation_(make_operation(*plan_.library, plan_.answer->product(),
                                  addresses_of(plan_.answer->product(), arguments))),
        workspace_(arguments.device(), workspace_bytes) {}

  void launch(Stream stream) override {
    driver::refuse_after_fork();
    kernel::check_stream(stream, arguments().device());
    workspace_.use(stream, [&] {
      put(kernel_, plan_, operation_.get(), arguments(), workspace_.lend().data, stream);
    });
  }

 private:
  Kernel kernel_;
  Plan plan_;
  Owned<MatmulDescriptor> operation_;
  runtime::LaunchWorkspace workspace_;
};

}  // namespace

Status check_numbers(const Product& product, const GemmArguments& arguments) {
  const Numbers numbers = numbers_of(product, arguments);
  return check_scalars(product, numbers.alpha, numbers.beta);
}

void put(const Kernel& kernel, const Plan& plan, MatmulDescriptor operation,
         const GemmArguments& arguments, void* workspace, Stream stream) {
  const Product& product = plan.answer->product();
  if (const Status status = check_numbers(product, arguments); !status)
    throw Error({.kind = ErrorKind::unsupported, .operand = kernel.name(), .got = status.error()});
  const Numbers numbers = numbers_of(product, arguments);
  const Scalar alpha(product.scale, numbers.alpha);
  const Scalar beta(product.scale, numbers.beta);
  const Layouts& layouts = plan.answer->layouts();
  const Library& library = *plan.library;
  const driver::ScopedContext current(plan.device->device());
  const driver::ScopedRelaxedCapture relaxed(plan.device->device().api());
  set_addresses(library, operation, product, addresses_of(product, arguments));
  const void* const a = arguments.a().data();
  const void* const b = arguments.b().data();
  const Result result = library.api.cublasLtMatmul(
      plan.device->handle(), operation, alpha.bytes.data(), product.swaps ? b : a,
      layouts.first.get(), product.swaps ? a : b, layouts.second.get(), beta.bytes.data(),
      address_of_c(product, arguments), layouts.c.get(), arguments.out().data(), layouts.out.get(),
      &plan.choice->data, workspace, plan.choice->workspace_bytes,
      static_cast<CudaStream>(stream.handle()));
  if (result != Result::success) refuse_launch(kernel, library, result, stream);
}

void put_once(const Kernel& kernel, const Plan& plan, const GemmArguments& arguments,
              void* workspace, Stream stream) {
  const Product& product = plan.answer->product();
  if (!has_attachments(product))
    return put(kernel, plan, plan.answer->operation(), arguments, workspace, stream);
  const auto operation = make_operation(*plan.library, product, addresses_of(product, arguments));
  put(kernel, plan, operation.get(), arguments, workspace, stream);
}

std::unique_ptr<PreparedLaunchState> prepare(const Kernel& kernel, Plan plan,
                                             const GemmArguments& arguments,
                                             std::size_t workspace_bytes) {
  return std::make_unique<LtLaunch>(kernel, std::move(plan), arguments, workspace_bytes);
}

}  // namespace gemmery::cublaslt
