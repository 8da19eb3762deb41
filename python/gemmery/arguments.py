# SPDX-License-Identifier: Apache-2.0
"""Operations with operands bound to memory. Validated once, at construction; accepted arguments can be run."""

from __future__ import annotations

import dataclasses

from gemmery._core import ConvArguments, ElementwiseArguments, GemmArguments, GroupedGemmArguments, RuntimeArguments
from gemmery.epilogue import EpilogueArguments
from gemmery.errors import InvalidArgumentError

__all__ = [
    "ConvArguments",
    "ElementwiseArguments",
    "EpilogueArguments",
    "GemmArguments",
    "GroupedGemmArguments",
    "PerformanceControls",
    "RuntimeArguments",
]


@dataclasses.dataclass(frozen=True)
class PerformanceControls:
    """Requirements on kernels beyond correct results.

    max_sms: persistent kernels use at most this many multiprocessors (leaving room for collectives); None: all.
    deterministic: only kernels that give equal bits for equal inputs.
    """

    max_sms: int | None = None
    deterministic: bool = False

    def __post_init__(self) -> None:
        if self.max_sms is None:
            return
        if isinstance(self.max_sms, bool) or not hasattr(self.max_sms, "__index__"):
            raise TypeError(f"max_sms: expected a whole number or None, got {self.max_sms!r}")
        if self.max_sms < 1:
            raise InvalidArgumentError(f"invalid argument: max_sms: expected at least 1, got {self.max_sms}")
