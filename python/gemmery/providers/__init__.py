# SPDX-License-Identifier: Apache-2.0
"""Where kernels come from: the library's own providers, and those of Python classes.

@gemmery.Provider.register
class MyKernel(gemmery.Kernel): ...

@gemmery.providers.register_provider("mine")
class MyProvider(gemmery.Provider): ...
"""

from __future__ import annotations

import importlib.util
import logging
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from gemmery import _core
from gemmery.errors import InvalidArgumentError
from gemmery.kernel import Kernel, registrations
from gemmery.metadata import KernelMetadata
from gemmery.status import Status

__all__ = [
    "CuTeDSLProvider",
    "LibraryProvider",
    "Provider",
    "TritonProvider",
    "available_providers",
    "provider_of",
    "register_provider",
]

_log = logging.getLogger("gemmery")
KernelClass = TypeVar("KernelClass", bound=type[Kernel])


class Provider:
    """A named set of kernel classes. Registered with it, a class is asked by every later `get_kernels`."""

    name: ClassVar[str] = "python"
    kernel_classes: ClassVar[list[type[Kernel]]] = []

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.kernel_classes = []

    @classmethod
    def register(cls, kernel_class: KernelClass) -> KernelClass:
        """Adds a class of kernels; a decorator. TypeError for what does not derive from Kernel or is not complete;
        ValueError for a class that is there."""
        if not (isinstance(kernel_class, type) and issubclass(kernel_class, Kernel)):
            raise TypeError(f"{cls.__name__}.register: expected a class that derives from Kernel, got {kernel_class!r}")
        missing = sorted(getattr(kernel_class, "__abstractmethods__", ()))
        if missing:
            raise TypeError(f"{kernel_class.__name__}: expected an implementation of {', '.join(missing)}, got none")
        owner = _owners.get(kernel_class)
        if owner is not None:
            raise ValueError(f"{kernel_class.__name__}: expected a class that is not registered, got one of {owner.name}")
        _owners[kernel_class] = cls
        cls.kernel_classes.append(kernel_class)
        registrations.note()
        return kernel_class

    @classmethod
    def withdraw(cls, kernel_class: type[Kernel]) -> None:
        """Takes a class out of discovery; its kernels in hand stay usable."""
        cls.kernel_classes.remove(kernel_class)
        del _owners[kernel_class]
        registrations.note()

    @classmethod
    def availability(cls) -> Status:
        """Whether what its kernels are written in is here."""
        return Status.success()


_owners: dict[type[Kernel], type[Provider]] = {}
_python_providers: dict[str, type[Provider]] = {"python": Provider}


def register_provider(name: str) -> Callable[[type[Provider]], type[Provider]]:
    """A decorator: makes a class that derives from Provider known by a name. ValueError for a name that is taken."""

    def register(provider: type[Provider]) -> type[Provider]:
        if name in _python_providers or name in _core.provider_names():
            raise ValueError(f"provider {name!r}: expected a name that is not taken, got one that is")
        provider.name = name
        _python_providers[name] = provider
        return provider

    return register


@dataclass(frozen=True)
class LibraryProvider:
    """A provider of the library itself; `name` is what `get_kernels(providers=[...])` takes, or this object."""

    name: str


class _AvailableProviders(Mapping[str, Any]):
    """Names for `get_kernels(providers=[...])`, best first, with who they are: `"triton" in available_providers`,
    `available_providers["triton"]`. Called, it gives the names. What is not installed is not among them."""

    def __call__(self) -> list[str]:
        return [*_core.provider_names(), *(name for name, one in _python_providers.items() if one.availability())]

    def __getitem__(self, name: str) -> type[Provider] | LibraryProvider:
        if name not in self():
            raise KeyError(name)
        return _python_providers.get(name) or LibraryProvider(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self())

    def __len__(self) -> int:
        return len(self())

    def __repr__(self) -> str:
        return f"available_providers({', '.join(self())})"


available_providers = _AvailableProviders()


def provider_of(kernel_class: type[Kernel]) -> str:
    """The name of the provider that a class is registered with; "" where it is with none."""
    owner = _owners.get(kernel_class)
    return owner.name if owner is not None else ""


def _needs(module: str, package: str) -> Status:
    """Whether a module, or one below it, is installed; nothing is imported."""
    name, _, below = module.partition(".")
    spec = importlib.util.find_spec(name)
    folders = (spec.submodule_search_locations if spec is not None else None) or []
    if spec is not None and (not below or any(pathlib.Path(folder, below).is_dir() for folder in folders)):
        return Status.success()
    return Status.fail(f"unavailable: the module {module} was not found; pip install {package}")


@register_provider("triton")
class TritonProvider(Provider):
    """Kernels written in Triton."""

    @classmethod
    def availability(cls) -> Status:
        return _needs("triton", "triton")


@register_provider("cutedsl")
class CuTeDSLProvider(Provider):
    """Kernels written in the CuTe DSL; their base is gemmery.providers.cutedsl.kernel.CuteDslKernel."""

    @classmethod
    def availability(cls) -> Status:
        return _needs("cutlass.cute", "nvidia-cutlass-dsl")


# --- discovery -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reason:
    """Why a class of Python kernels does not serve, or how many of it do; the fields of the library's own reasons."""

    provider: str
    family: str
    design_class: str = ""
    failed: str = ""
    fitting: int = 0
    nearest: list[Any] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Reason({self.provider}/{self.family}: {self.failed or f'{self.fitting} kernels fit'})"


def has_kernel_classes() -> bool:
    """Whether any Python class takes part in discovery."""
    return bool(_owners)


def split_names(providers: Iterable[Any] | None) -> tuple[list[str] | None, list[type[Provider]]]:
    """Names (or classes) of providers as the library's names (None: all) and Python's providers. ValueError for one that
    is unknown or not available here."""
    if providers is None:
        return None, list(_python_providers.values())
    if isinstance(providers, str):
        raise TypeError(f"providers: expected a list of names, got {providers!r}")
    native: list[str] = []
    ours: list[type[Provider]] = []
    for provider in providers:
        name = str(getattr(provider, "name", provider))
        if name not in _python_providers:
            if name not in _core.provider_names():
                known = ", ".join([*_core.provider_names(), *_python_providers])
                raise InvalidArgumentError(f'invalid argument: providers: expected one of {known}, got "{name}"')
            native.append(name)
            continue
        status = _python_providers[name].availability()
        if not status:
            raise ValueError(f"provider {name} is not available: {status.error}")
        ours.append(_python_providers[name])
    return native, ours


def find_python_kernels(
    args: Any,
    metadata_filter: Callable[[KernelMetadata], bool] | None,
    cc: int | None,
    providers: Iterable[type[Provider]],
    reasons: list[Reason] | None = None,
) -> list[Kernel]:
    """Kernels of all registered classes that serve; what a class raises is logged with its name and told in reasons."""
    found: list[Kernel] = []
    for provider in providers:
        for kernel_class in provider.kernel_classes:
            search = _Search(provider, kernel_class, args, metadata_filter, cc)
            search.run()
            found.extend(search.kernels)
            if reasons is not None:
                reasons.append(search.reason())
    return found


class _Search:
    """The kernels of one class for one question."""

    def __init__(
        self,
        provider: type[Provider],
        kernel_class: type[Kernel],
        args: Any,
        metadata_filter: Callable[[KernelMetadata], bool] | None,
        cc: int | None,
    ) -> None:
        self.provider = provider
        self.kernel_class = kernel_class
        self.args = args
        self.user_filter = metadata_filter
        self.cc = cc
        self.kernels: list[Kernel] = []
        self.failed = ""
        self._filter_error: BaseException | None = None

    def run(self) -> None:
        status = self.provider.availability()
        if not status:
            self.failed = str(status.error)
            return
        epilogue = None if self.args is None else self.args.epilogue
        try:
            for kernel in self.kernel_class.generate_kernels(self._passes, epilogue, self.cc):
                self._consider(kernel)
        except Exception as error:
            if error is self._filter_error:
                raise  # the caller's own filter
            self._blame("generate_kernels", error)

    def reason(self) -> Reason:
        failed = self.failed if not self.kernels else ""
        if not failed and not self.kernels:
            failed = "it generates no kernel for this"
        return Reason(self.provider.name, self.kernel_class.__name__, failed=failed, fitting=len(self.kernels))

    def _passes(self, metadata: KernelMetadata) -> bool:
        if self.args is not None:
            status = metadata.supports(self.args)
            if not status:
                self.failed = self.failed or f"{metadata.kernel_name}: {status.error}"
                return False
        return self._passes_filter(metadata)

    def _passes_filter(self, metadata: KernelMetadata) -> bool:
        if self.user_filter is None:
            return True
        try:
            return bool(self.user_filter(metadata))
        except Exception as error:
            self._filter_error = error
            raise

    def _consider(self, kernel: Kernel) -> None:
        if not isinstance(kernel, Kernel):
            raise TypeError(f"expected kernels, got {kernel!r}")
        if self.cc is not None and kernel.metadata.min_cc > self.cc:
            self.failed = self.failed or f"{kernel.name}: expected cc {kernel.metadata.min_cc} or later, got {self.cc}"
            return
        if not self._passes_filter(kernel.metadata):
            return
        if self.args is not None and not self._serves(kernel):
            return
        self.kernels.append(kernel)

    def _serves(self, kernel: Kernel) -> bool:
        try:
            status = kernel.supports(self.args)
            kernel.predicted_us = kernel.predict_us(self.args) if status else None
        except Exception as error:
            self._blame(f"supports of {kernel.name}", error)
            return False
        if not status:
            self.failed = self.failed or f"{kernel.name}: {status.error}"
        return bool(status)

    def _blame(self, call: str, error: Exception) -> None:
        self.failed = f"{call} raised {type(error).__name__}: {error}"
        _log.warning("%s/%s: %s", self.provider.name, self.kernel_class.__name__, self.failed)


def merged(kernels: list[Any], ours: Iterable[Kernel]) -> list[Any]:
    """Both in one list, best first: by predicted time, those without one behind all."""
    result = list(kernels)
    for kernel in ours:
        time = kernel.predicted_us
        at = len(result)
        if time is not None:
            slower = (i for i, other in enumerate(result) if other.predicted_us is None or other.predicted_us > time)
            at = next(slower, len(result))
        result.insert(at, kernel)
    return result
