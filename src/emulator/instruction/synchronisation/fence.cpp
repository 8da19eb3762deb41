// SPDX-License-Identifier: Apache-2.0
// fence and membar: between threads, between proxies, and after mbarrier.init.
#include "emulator/instruction/form.hpp"
#include "emulator/instruction/synchronisation/synchronisation_rows.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {
namespace {

// --- between threads ----------------------------------------------------------------------------

// Operation::immediate.
enum class Direction : std::uint8_t { both, acquire_only, release_only };

// Acquires what strong loads before the fence have observed; strong stores after it publish.
Step run_fence(Warp& warp, const Operation& operation, LaneMask) {
  FenceState& fence = warp.fence;
  const auto direction = static_cast<Direction>(operation.immediate);
  if (direction != Direction::release_only && fence.has_observed) {
    warp.acquire(fence.observed);
    fence.observed.clear();
    fence.has_observed = false;
  }
  if (direction != Direction::acquire_only) {
    warp.release(fence.released);
    fence.has_released = true;
    fence.released_scope = static_cast<Scope>(operation.flags);
  }
  return Step::next;
}

void begin_fence(Operation& operation, Direction direction, Scope scope) {
  operation.execute = run_fence;
  operation.immediate = static_cast<std::uint64_t>(direction);
  operation.flags = static_cast<std::uint32_t>(scope);
}

Scope take_scope(Form& form) {
  if (form.take("cta")) return Scope::cta;
  if (form.take("cluster")) return Scope::cluster;
  if (form.take("gpu")) return Scope::gpu;
  if (form.take("sys")) return Scope::system;
  form.refuse("a scope (.cta, .cluster, .gpu, .sys) is missing");
}

void decode_thread_fence(Form& form) {
  Direction direction = Direction::both;
  if (form.take("acquire"))
    direction = Direction::acquire_only;
  else if (form.take("release"))
    direction = Direction::release_only;
  else if (!form.take("sc"))
    form.take("acq_rel");
  // The restricted form orders less (the barriers of a cluster, or shared memory); the emulator
  // applies the full fence.
  form.take("sync_restrict::shared::cta");
  form.take("sync_restrict::shared::cluster");
  begin_fence(form.operation(), direction, take_scope(form));
}

// --- between proxies ----------------------------------------------------------------------------

// Makes all generic accesses that are known here visible to the async proxy, except those of lanes
// that did not fence and are not ordered before this fence.
Step run_async_proxy_fence(Warp& warp, const Operation&, LaneMask active) {
  VectorClock& fenced = warp.known.fenced;
  const std::uint32_t fenced_before = fenced.of(warp.agent);
  warp.unfenced_lanes &= ~active;
  fenced.join(warp.known.happened);
  if (warp.unfenced_lanes == 0) {
    ++warp.clock;  // later writes are not fenced
    warp.known.happened.raise(warp.agent, warp.clock);
  } else {
    fenced.set(warp.agent, fenced_before);
    fenced.raise(warp.agent, warp.synchronised_clock);
  }
  return Step::next;
}

// Releases all writes that are known here to the tensor-map proxy; later writes are not released.
Step run_map_release(Warp& warp, const Operation&, LaneMask) {
  warp.known.map_released.join(warp.known.happened);
  ++warp.clock;
  warp.known.happened.raise(warp.agent, warp.clock);
  return Step::next;
}

// Acquires all released changes of tensor maps, whichever address the fence names.
Step run_map_acquire(Warp& warp, const Operation&, LaneMask) {
  warp.known.map_acquired.join(warp.known.map_released);
  return Step::next;
}

void decode_proxy_fence(Form& form) {
  Operation& operation = form.operation();
  // The emulator has no aliases of a location and no constant caches: fences of those do nothing.
  operation.execute = run_nothing;
  if (form.take("alias")) return;
  if (form.take("tensormap::generic")) {
    if (form.take("acquire"))
      operation.execute = run_map_acquire;
    else if (form.take("release"))
      operation.execute = run_map_release;
    else
      form.refuse("expected .acquire or .release");
    take_scope(form);
    return;
  }
  if (!form.take("async")) form.refuse("expected .async, .alias or .tensormap::generic");
  // The emulator ignores the state space to which the fence is restricted.
  if (!form.take("global") && !form.take("shared::cta")) form.take("shared::cluster");
  operation.execute = run_async_proxy_fence;
}

}  // namespace

void decode_fence(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  if (form.take("proxy")) {
    decode_proxy_fence(form);
  } else if (form.take("mbarrier_init")) {
    // Releases everything, not only the initialised mbarriers: a later relaxed arrival then
    // publishes all of it.
    if (!form.take("release") || !form.take("cluster")) form.refuse("expected .release.cluster");
    begin_fence(operation, Direction::release_only, Scope::cluster);
  } else {
    decode_thread_fence(form);
  }
  form.finish();
}

void decode_membar(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  if (form.take("proxy")) {
    decode_proxy_fence(form);
  } else {
    const Scope scope = form.take("cta")   ? Scope::cta
                        : form.take("gl")  ? Scope::gpu
                        : form.take("sys") ? Scope::system
                                           : take_scope(form);
    begin_fence(operation, Direction::both, scope);
  }
  form.finish();
}

}  // namespace gemmery::emulator
