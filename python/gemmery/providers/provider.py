# SPDX-License-Identifier: Apache-2.0
"""Providers: named sets of kernel classes, and the table of them."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from gemmery import _core
from gemmery.kernel import Kernel, registrations
from gemmery.metadata import KernelMetadata
from gemmery.status import Status

__all__ = [
    "LibraryProvider",
    "Provider",
    "available_providers",
    "needs",
    "provider_of",
    "python_providers",
    "register_provider",
]

KernelClass = TypeVar("KernelClass", bound=type[Kernel])


def _accept_all(metadata: KernelMetadata) -> bool:
    return True


class Provider:
    """A named set of kernel classes. Registered with it, a class is asked by every later `get_kernels`."""

    name: ClassVar[str] = "python"
    kernel_classes: ClassVar[list[type[Kernel]]] = []

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.kernel_classes = []

    @classmethod
    def register(cls, kernel_class: KernelClass) -> KernelClass:
        """Adds a class of kernels; a decorator. Raises TypeError if the class does not derive from Kernel or is incomplete;
        ValueError if it is registered already."""
        if not (isinstance(kernel_class, type) and issubclass(kernel_class, Kernel)):
            raise TypeError(f"{cls.__name__}.register: expected a class that derives from Kernel, got {kernel_class!r}")
        missing = sorted(getattr(kernel_class, "__abstractmethods__", ()))
        if missing:
            raise TypeError(f"{kernel_class.__name__}: expected an implementation of {', '.join(missing)}, got none")
        owner = registrations.providers.get(kernel_class)
        if owner is not None:
            raise ValueError(f"{kernel_class.__name__}: expected a class that is not registered, got one of {owner.name}")
        registrations.providers[kernel_class] = cls
        cls.kernel_classes.append(kernel_class)
        registrations.note()
        return kernel_class

    @classmethod
    def withdraw(cls, kernel_class: type[Kernel]) -> None:
        """Removes a class from discovery; existing kernels of it stay usable."""
        cls.kernel_classes.remove(kernel_class)
        del registrations.providers[kernel_class]
        registrations.note()

    @classmethod
    def generate_kernels(
        cls,
        metadata_filter: Callable[[KernelMetadata], bool] | None = None,
        epilogue_args: Any = None,
        cc: int | None = None,
    ) -> list[Kernel]:
        """The kernels of all its classes whose metadata the filter accepts (None: all). Exceptions of a class pass through;
        `get_kernels` skips such a class, and `explain` reports the reason."""
        accepts = metadata_filter if metadata_filter is not None else _accept_all
        return [kernel for one in cls.kernel_classes for kernel in one.generate_kernels(accepts, epilogue_args, cc)]

    @classmethod
    def availability(cls) -> Status:
        """Success if the package in which its kernels are written is installed."""
        return Status.success()


python_providers: dict[str, type[Provider]] = {"python": Provider}


def register_provider(name: str) -> Callable[[type[Provider]], type[Provider]]:
    """A decorator that registers a subclass of Provider under a name. Raises ValueError if the name is taken."""

    def register(provider: type[Provider]) -> type[Provider]:
        if name in python_providers or name in _core.provider_names():
            raise ValueError(f"provider {name!r}: expected a name that is not taken, got one that is")
        provider.name = name
        python_providers[name] = provider
        return provider

    return register


@dataclass(frozen=True)
class LibraryProvider:
    """A provider of the library itself. `get_kernels(providers=[...])` takes its `name` or this object."""

    name: str


class _AvailableProviders(Mapping[str, Any]):
    """The providers that `get_kernels(providers=[...])` takes, by name, best first: `"triton" in available_providers`,
    `available_providers["triton"]`. A call returns the names. Providers whose packages are not installed are absent."""

    def __call__(self) -> list[str]:
        return [*_core.provider_names(), *(name for name, one in python_providers.items() if one.availability())]

    def __getitem__(self, name: str) -> type[Provider] | LibraryProvider:
        if name not in self():
            raise KeyError(name)
        return python_providers.get(name) or LibraryProvider(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self())

    def __len__(self) -> int:
        return len(self())

    def __repr__(self) -> str:
        return f"available_providers({', '.join(self())})"


available_providers = _AvailableProviders()


def provider_of(kernel_class: type[Kernel]) -> str:
    """The name of the provider with which a class is registered; "" if there is none."""
    return registrations.provider_of(kernel_class)


def needs(module: str, package: str) -> Status:
    """True if a module or submodule is installed. It is not imported."""
    name, _, below = module.partition(".")
    if module in sys.modules:
        return Status.success()
    spec = importlib.util.find_spec(name)
    folders = (spec.submodule_search_locations if spec is not None else None) or []
    if spec is not None and (not below or any(pathlib.Path(folder, below).is_dir() for folder in folders)):
        return Status.success()
    return Status.fail(f"unavailable: the module {module} was not found; pip install {package}")
