# SPDX-License-Identifier: Apache-2.0
"""Discovery among classes of Python kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gemmery import _core, _ignored
from gemmery.errors import InvalidArgumentError
from gemmery.kernel import Kernel, registrations
from gemmery.metadata import KernelMetadata
from gemmery.providers.provider import Provider, python_providers

__all__ = ["Reason", "find_python_kernels", "has_kernel_classes", "merged", "split_names"]


@dataclass(frozen=True)
class Reason:
    """Why a class of Python kernels does not serve, or how many of its kernels do; fields as in the library's reasons."""

    provider: str
    family: str
    design_class: str = ""
    failed: str = ""
    fitting: int = 0
    nearest: list[Any] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Reason({self.provider}/{self.family}: {self.failed or f'{self.fitting} kernels fit'})"


def has_kernel_classes() -> bool:
    """True if any Python class takes part in discovery."""
    return bool(registrations.providers)


def split_names(providers: Iterable[Any] | None) -> tuple[list[str] | None, list[type[Provider]]]:
    """Splits names (or classes) of providers into the library's names (None: all) and Python's providers. Raises ValueError
    for one that is unknown or not available here."""
    if providers is None:
        return None, list(python_providers.values())
    if isinstance(providers, str):
        raise TypeError(f"providers: expected a list of names, got {providers!r}")
    native: list[str] = []
    ours: list[type[Provider]] = []
    for provider in providers:
        name = str(getattr(provider, "name", provider))
        if name not in python_providers:
            if name not in _core.provider_names():
                known = ", ".join([*_core.provider_names(), *python_providers])
                raise InvalidArgumentError(f'invalid argument: providers: expected one of {known}, got "{name}"')
            native.append(name)
            continue
        status = python_providers[name].availability()
        if not status:
            raise ValueError(f"provider {name} is not available: {status.error}")
        ours.append(python_providers[name])
    return native, ours


def find_python_kernels(
    args: Any,
    metadata_filter: Callable[[KernelMetadata], bool] | None,
    cc: int | None,
    providers: Iterable[type[Provider]],
    reasons: list[Reason] | None = None,
) -> list[Kernel]:
    """The kernels of all registered classes that serve the problem. An exception of a class is one warning and a reason."""
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
    """The search among the kernels of one class for one problem."""

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
        _ignored.warn_once(f"gemmery skips {self.provider.name}/{self.kernel_class.__name__}: {self.failed}")


def merged(kernels: list[Any], ours: Iterable[Kernel]) -> list[Any]:
    """Merges both lists, best first by predicted time; kernels without a prediction come last."""
    result = list(kernels)
    for kernel in ours:
        time = kernel.predicted_us
        at = len(result)
        if time is not None:
            slower = (i for i, other in enumerate(result) if other.predicted_us is None or other.predicted_us > time)
            at = next(slower, len(result))
        result.insert(at, kernel)
    return result
