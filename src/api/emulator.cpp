// SPDX-License-Identifier: Apache-2.0
// The public functions of the emulator: modules, launches, faults as exceptions.
#include <gemmery/emulator.hpp>

#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "driver/driver.hpp"
#include "driver/tensor_map.hpp"
#include "emulator/device.hpp"
#include "emulator/module.hpp"
#include "jit/compiler.hpp"
#include "platform/cancellation.hpp"

namespace gemmery {
namespace {

emulator::EmulatedDevice& emulated(Device device) {
  if (device.type != DeviceType::emulated) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "device",
                 .expected = "an emulated one, for example emulated:h200",
                 .got = to_string(device)});
  }
  return emulator::device_at(device.index);
}

// The most specific target of a device: with architecture-specific features, if there is such a
// form.
Target own_target(Target device) {
  const bool has_own_form = device.architecture >= 90;
  return has_own_form ? Target{device.architecture, 'a'} : device;
}

EmulatorFaultDetails details_of(const emulator::Fault& fault) {
  return {.kind = emulator::name(fault.kind),
          .report = fault.report(),
          .kernel = fault.place.kernel,
          .block = fault.place.cta,
          .warp = fault.place.warp,
          .lane = fault.place.lane,
          .ptx_line = fault.place.ptx_line,
          .source_file = fault.place.source_file,
          .source_line = fault.place.source_line};
}

[[noreturn]] void refuse_parameters(std::string_view entry, std::string expected, std::string got) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "parameters of " + std::string(entry),
               .expected = std::move(expected),
               .got = std::move(got)});
}

std::vector<std::byte> lay_out(const emulator::KernelImage& image,
                               std::span<const EmulatedParameter> parameters) {
  const std::size_t count = image.parameter_offset.size();
  if (parameters.size() != count)
    refuse_parameters(image.name, std::to_string(count), std::to_string(parameters.size()));
  std::vector<std::byte> bytes(image.parameter_bytes);
  for (std::size_t index = 0; index < count; ++index) {
    const EmulatedParameter& parameter = parameters[index];
    if (parameter.bytes != image.parameter_size[index]) {
      refuse_parameters(image.name,
                        fmt::format("{} bytes for number {}", image.parameter_size[index], index),
                        std::to_string(parameter.bytes));
    }
    if (parameter.data == nullptr)
      refuse_parameters(image.name, fmt::format("the bytes of number {}", index), "a null pointer");
    std::memcpy(bytes.data() + image.parameter_offset[index], parameter.data, parameter.bytes);
  }
  return bytes;
}

driver::cuda::TensorMapSwizzle swizzle_of(int bytes) {
  switch (bytes) {
    case 0:
      return driver::cuda::TensorMapSwizzle::none;
    case 32:
      return driver::cuda::TensorMapSwizzle::bytes32;
    case 64:
      return driver::cuda::TensorMapSwizzle::bytes64;
    case 128:
      return driver::cuda::TensorMapSwizzle::bytes128;
    default:
      throw Error({.kind = ErrorKind::invalid_argument,
                   .operand = "swizzle_bytes",
                   .expected = "0, 32, 64 or 128",
                   .got = std::to_string(bytes)});
  }
}

}  // namespace

// --- faults -------------------------------------------------------------------------------------

EmulatorFault::EmulatorFault(EmulatorFaultDetails details)
    : Error({.kind = ErrorKind::launch, .operand = details.kernel, .got = details.report}),
      fault_(std::move(details)) {}

// --- modules ------------------------------------------------------------------------------------

struct EmulatedModule::Insides {
  Insides(std::string text, emulator::EmulatedDevice& where)
      : ptx(std::move(text)), device(where), module(ptx) {}

  std::string ptx;
  emulator::EmulatedDevice& device;
  emulator::Module module;
};

EmulatedModule::EmulatedModule(std::unique_ptr<Insides> insides) : insides_(std::move(insides)) {}
EmulatedModule::~EmulatedModule() = default;
EmulatedModule::EmulatedModule(EmulatedModule&&) noexcept = default;
EmulatedModule& EmulatedModule::operator=(EmulatedModule&&) noexcept = default;

EmulatedModule EmulatedModule::load(std::string_view ptx, Device device) {
  auto insides = std::make_unique<Insides>(std::string(ptx), emulated(device));
  const emulator::Module& module = insides->module;
  if (!module.runs_on(insides->device.info)) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = "PTX",
                 .expected = "code that " + to_string(device) + " (" +
                             to_string(insides->device.info.target) + ") runs",
                 .got = "code for " + module.program().target});
  }
  return EmulatedModule(std::move(insides));
}

EmulatedModule EmulatedModule::compile(const std::string& source, Device device,
                                       std::vector<std::string> options) {
  options.emplace_back("--disable-warnings");  // the user's own compiler reports them
  // Not from a cache, which would not notice a change of the user's headers.
  const jit::CompiledCode code = jit::compile({.source = source,
                                               .entry = {},
                                               .target = own_target(emulated(device).info.target),
                                               .form = CodeForm::ptx,
                                               .extra_options = std::move(options),
                                               .has_own_headers = true});
  return load(code.ptx, device);
}

const std::string& EmulatedModule::ptx() const noexcept { return insides_->ptx; }

std::vector<std::string> EmulatedModule::entries() const {
  std::vector<std::string> names;
  for (const emulator::Function& function : insides_->module.program().functions) {
    if (function.is_entry) names.push_back(function.name);
  }
  return names;
}

EmulatedRun EmulatedModule::launch(std::string_view entry, const EmulatedLaunch& shape,
                                   std::span<const EmulatedParameter> parameters) const {
  emulator::KernelLaunch launch{.device = &insides_->device,
                                .image = insides_->module.image(entry, insides_->device),
                                .grid = shape.grid,
                                .block = shape.block,
                                .cluster = shape.cluster,
                                .dynamic_shared_bytes = shape.shared_bytes,
                                .is_cooperative = shape.is_cooperative,
                                .parameters = {}};
  launch.parameters = lay_out(*launch.image, parameters);
  const std::lock_guard lock(insides_->device.executing);
  try {
    const emulator::LaunchStatistics statistics =
        emulator::run(launch, shape.seed, shape.step_limit);
    return {.warp_instructions = statistics.warp_instructions,
            .lane_instructions = statistics.lane_instructions};
  } catch (const emulator::Fault& fault) {
    throw EmulatorFault(details_of(fault));
  }
}

// --- tensor maps --------------------------------------------------------------------------------

EncodedTensorMap encode_emulated_tensor_map(const TensorMapView& view) {
  const driver::cuda::TensorMap map = driver::encode(driver::driver_for(DeviceType::emulated).api(),
                                                     {.address = view.address,
                                                      .dtype = view.dtype,
                                                      .rank = view.rank,
                                                      .extents = view.extents,
                                                      .byte_strides = view.byte_strides,
                                                      .box = view.box,
                                                      .element_strides = view.element_strides,
                                                      .swizzle = swizzle_of(view.swizzle_bytes)});
  EncodedTensorMap encoded;
  static_assert(sizeof encoded.words == sizeof map.opaque);
  std::memcpy(encoded.words.data(), map.opaque, sizeof map.opaque);
  return encoded;
}

// --- ending launches early ----------------------------------------------------------------------

EmulatorStopScope::EmulatorStopScope(std::stop_token stop)
    : outer_(std::exchange(platform::current_cancellation(), std::move(stop))) {}

EmulatorStopScope::~EmulatorStopScope() { platform::current_cancellation() = std::move(outer_); }

// --- all emulated devices -----------------------------------------------------------------------

void set_emulator_seed(std::uint64_t seed) noexcept { emulator::set_schedule_seed(seed); }

EmulatorStatistics emulator_statistics(Device device) {
  const emulator::DeviceCounters& counters = emulated(device).counters;
  return {.launches = counters.launches,
          .warp_instructions = counters.warp_instructions,
          .lane_instructions = counters.lane_instructions,
          .unwritten_bytes_copied = counters.unwritten_bytes_copied};
}

}  // namespace gemmery
