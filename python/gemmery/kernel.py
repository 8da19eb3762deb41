# SPDX-License-Identifier: Apache-2.0
"""The class of all kernels, and the base class of users' kernels, which discovery lists alongside the library's."""

from __future__ import annotations

import abc
import collections
import functools
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, final

from gemmery import _core, _html
from gemmery._core import CompiledArtifact
from gemmery.errors import InvalidArgumentError, UnsupportedError
from gemmery.metadata import KernelMetadata
from gemmery.status import Status

__all__ = ["Kernel"]


class _Registrations:
    """The provider of each kernel class, and a count of registrations and withdrawals in Python. Lists that were made at
    another count may be out of date."""

    def __init__(self) -> None:
        self.count = 0
        self.providers: dict[type, Any] = {}

    def note(self) -> None:
        self.count += 1

    def provider_of(self, kernel_class: type) -> str:
        """The name of the provider that a class is registered with; "" without one."""
        provider = self.providers.get(kernel_class)
        return str(provider.name) if provider is not None else ""


registrations = _Registrations()


class Kernel(abc.ABC):
    """A kernel. The library's kernels are instances, too. To bring kernels of your own, derive from it:

        @gemmery.Provider.register
        class MyKernel(gemmery.Kernel):
            @staticmethod
            def generate_kernels(metadata_filter, epilogue_args=None, cc=None): ...
            def compile(self, args, cc=None): ...
            def _run(self, args, artifact, stream, workspace): ...

    generate_kernels yields instances, each with a `KernelMetadata` of its own. `supports` and `run` are final: they check
    what the metadata declares, then ask `_supports` and call `_run`. An instance may be used by any number of threads.
    docs/python-own-kernels.md has whole examples.
    """

    # The device type of the operands: "cuda" or "cpu". Others are refused before `_supports` is called.
    runs_on: ClassVar[str] = "cuda"
    # True if `_run` multiplies by args.alpha; otherwise only an alpha of 1 is supported. C is supported if the metadata's
    # operands have one.
    takes_alpha: ClassVar[bool] = False
    # Microseconds predicted for the arguments of the query; set by discovery.
    predicted_us: float | None = None
    is_measured = False

    def __init__(self, metadata: KernelMetadata) -> None:
        self._metadata = metadata

    # --- description ---

    @property
    def metadata(self) -> KernelMetadata:
        """Operands, design, epilogue and targets. A subclass may assign it, as those of cutlass_api do."""
        return self._metadata

    @metadata.setter
    def metadata(self, metadata: KernelMetadata) -> None:
        self._metadata = metadata

    @property
    def name(self) -> str:
        """metadata.kernel_name: unique, and stable if you keep it so."""
        return self._metadata.kernel_name

    @property
    def provider(self) -> str:
        """The name of the provider that its class was registered with."""
        return registrations.provider_of(type(self))

    def __repr__(self) -> str:
        return f"Kernel({self.name})"

    def _repr_html_(self) -> str:
        return _html.of_kernel(self)

    # --- to override ---

    @staticmethod
    @abc.abstractmethod
    def generate_kernels(
        metadata_filter: Callable[[KernelMetadata], bool],
        epilogue_args: Any = None,
        cc: int | None = None,
    ) -> Iterable[Kernel]:
        """Yields the kernels whose metadata the filter accepts, for an epilogue and a device's compute capability (None: all).
        Every `get_kernels` calls it, so it must be cheap."""

    @abc.abstractmethod
    def compile(self, args: Any, cc: int | str | None = None) -> CompiledArtifact:
        """Returns the artifact that `_run` receives: `CompiledArtifact(compiled_obj, self)`."""

    @abc.abstractmethod
    def _run(self, args: Any, artifact: CompiledArtifact, stream: int, workspace: Any) -> None:
        """Enqueues the work on a stream (a handle; 0 on the CPU) and returns. `workspace` is None, or memory of at least
        `get_workspace_size(args)` bytes."""

    def _supports(self, args: Any) -> Status:
        """Checks conditions that the metadata cannot express."""
        return Status.success()

    def get_workspace_size(self, args: Any) -> int:
        """Bytes of scratch memory that `run` needs for these arguments."""
        return 0

    def initialize_workspace(self, args: Any, workspace: Any) -> None:  # noqa: B027 - few kernels need it
        """Fills the workspace with what it must hold before its first run; called by the user."""

    def predict_us(self, args: Any) -> float | None:
        """The predicted time in microseconds, by which discovery ranks the kernel; None: it ranks after those with
        predictions."""
        return None

    def compile_key(self, args: Any) -> Any:
        """The key under which `run` without an artifact caches compiled code. Equal keys mean equal code. The default is the
        whole problem, its device and the performance controls."""
        return args.problem, args.device, args.performance

    # --- final ---

    @final
    def supports(self, args: Any, cc: int | str | None = None) -> Status:
        """True if `run` supports these arguments; otherwise a status with the reason."""
        device = str(getattr(args, "device", ""))
        if not device.startswith(self.runs_on):
            return Status.fail(f"expected operands on {self.runs_on}, got {device or type(args).__name__}")
        status = self._metadata.supports(args)
        if status:
            status = self._supports_scaling(args)
        return self._supports(args) if status else status

    def _supports_scaling(self, args: Any) -> Status:
        """Refuses an alpha or a C that the kernel would ignore."""
        operands = self._metadata.operands
        if args.alpha != 1 and not self.takes_alpha:
            return Status.fail(f"expected alpha = 1, got {args.alpha}")
        if args.beta != 0 and getattr(operands, "C", None) is None:
            return Status.fail(f"expected beta = 0, got {args.beta}: its operands have no C")
        math = getattr(operands, "math", "native")
        return Status.success() if args.math == math else Status.fail(f"expected math {math}, got {args.math}")

    @final
    def run(
        self,
        args: Any,
        compiled_artifact: CompiledArtifact | None = None,
        stream: Any = None,
        workspace: Any = None,
        assume_supported_args: bool = False,
    ) -> None:
        """Enqueues the work on the stream (None: the stream that the operands' framework reports as current) and returns.

        Without an artifact the code comes from the process-wide store, compiled at the first call with its
        `compile_key`. UnsupportedError (a ValueError) with the text of `supports`.
        """
        if not assume_supported_args:
            status = self.supports(args)
            if not status:
                raise UnsupportedError(f"unsupported: {self.name} does not support the provided arguments: {status.error}")
        handle = _core.resolve_stream(stream, args)  # 0 on the CPU
        artifact = compiled_artifact if compiled_artifact is not None else self._compiled(args, handle)
        self._run(args, artifact, handle, self._workspace(args, workspace, handle))
        if args.must_finish:
            _core.synchronize(handle, args.device)

    # --- the store of compiled code ---

    def _compiled(self, args: Any, stream: int) -> CompiledArtifact:
        key = (type(self), self.name, self.compile_key(args))
        found = _store.find(key)
        if found is None:
            self._refuse_in_capture(str(args.device), stream)
            found = _store.add(key, lambda: _beside_captures(str(args.device), lambda: self.compile(args)))
        return found

    def _refuse_in_capture(self, device: str, stream: int) -> None:
        if _is_capturing(device, stream):
            raise UnsupportedError(
                f"unsupported: {self.name}: expected code that is compiled before the stream is captured, got none; "
                "call kernel.compile(args) before, and pass the artifact"
            )

    def _workspace(self, args: Any, workspace: Any, stream: int) -> Any:
        needed = self.get_workspace_size(args)
        if workspace is None:
            return self._scratch(needed, str(args.device), stream) if needed > 0 else None
        view = _core.as_tensor(workspace)
        given = _elements(view.shape) * max(1, view.dtype.bits // 8)
        if given < needed:
            raise InvalidArgumentError(
                f"invalid argument: workspace: expected {needed} bytes, got {given}; get_workspace_size(args) says how many"
            )
        return workspace

    def _scratch(self, size: int, device: str, stream: int) -> Any:
        """Memory for one launch, from the framework's own allocator, which reuses it in the order of the launch's stream.
        During capture only if torch's current stream is captured, whose memory torch keeps for the graph."""
        if device == "cpu":
            return _core.empty((size,), "uint8", "cpu")
        torch = _torch_with_gpus()
        if torch is None:
            raise InvalidArgumentError(
                f"invalid argument: workspace: expected {size} bytes on {device}, got none; pass workspace="
            )
        if torch.cuda.current_stream(device).cuda_stream != stream and _is_captured(device, stream):
            raise UnsupportedError(
                f"unsupported: {self.name}: expected a workspace of {size} bytes in a capture of a stream that is not torch's "
                "current one, got none; allocate it before the capture and pass workspace="
            )

        def allocate() -> Any:
            with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=device)):
                return torch.empty(size, dtype=torch.uint8, device=device)

        return _beside_captures(device, allocate)


# Kernels of the library are instances of Kernel, too.
Kernel.register(_core.Kernel)  # type: ignore[type-abstract]


def _elements(shape: Iterable[int]) -> int:
    product = 1
    for extent in shape:
        product *= extent
    return product


def _torch_with_gpus() -> Any:
    """torch, if the program uses it and it has GPUs; otherwise None."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_available() else None


@functools.cache
def _is_here(device: str) -> bool:
    """True if there is a driver for GPUs."""
    return device.startswith("cuda") and device in _core.devices()


def _is_captured(device: str, stream: int) -> bool:
    return _is_here(device) and _core.is_capturing(stream, device)


def _is_capturing(device: str, stream: int) -> bool:
    """True if a capture would record work of a compilation: the launch's stream is captured, or torch's current stream of its
    device or of the current device, which receives work without a stream. Captures of other streams stay valid."""
    if _is_captured(device, stream):
        return True
    torch = _torch_with_gpus()
    if torch is None or not device.startswith("cuda"):
        return False
    if torch.cuda.is_current_stream_capturing():
        return True
    with torch.cuda.device(device):
        return bool(torch.cuda.is_current_stream_capturing())


def _beside_captures(device: str, work: Callable[[], Any]) -> Any:
    return _core.call_beside_captures(device, work) if _is_here(device) else work()


class _Store:
    """A cache of the compiled code of Python kernels; the least recently used entry is evicted first. Concurrent requests for
    one key share one build."""

    most = 256

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._artifacts: collections.OrderedDict[Any, CompiledArtifact] = collections.OrderedDict()
        self._building: dict[Any, threading.Lock] = {}

    def find(self, key: Any) -> CompiledArtifact | None:
        with self._lock:
            found = self._artifacts.get(key)
            if found is not None:
                self._artifacts.move_to_end(key)
            return found

    def add(self, key: Any, build: Callable[[], CompiledArtifact]) -> CompiledArtifact:
        with self._lock:
            building = self._building.setdefault(key, threading.Lock())
        with building:
            found = self.find(key) or build()
            with self._lock:
                self._artifacts[key] = found
                self._building.pop(key, None)
                while len(self._artifacts) > self.most:
                    self._artifacts.popitem(last=False)
        return found


_store = _Store()
