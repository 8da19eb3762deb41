# SPDX-License-Identifier: Apache-2.0
"""Filters of metadata, as `get_kernels` applies them: a kernel without the field that a filter reads is skipped."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from gemmery.metadata import DesignMetadata, EpilogueMetadata, KernelMetadata, TensorAttributes

# Fields of designs that the documentation or the classes of gemmery.metadata have, even if no queried kernel has them.
_OF_DESIGNS = {"tile_shape", "cluster_shape", "tile", "cluster", "instruction", "stages", "use_2cta_mma", "use_tma_store"}
# What a filter may read of the parts of metadata that are None for some kernels: an epilogue, the attributes of C.
_OF_OPTIONAL_PARTS = {*EpilogueMetadata.__dataclass_fields__, *TensorAttributes.__dataclass_fields__, "layout", "supports"}


class SkippingFilter:
    """A caller's filter that is False for kernels that lack a field. `refuse_unknown_fields` tells such fields from
    misspelled ones, after all kernels were asked."""

    def __init__(self, accepts: Callable[[KernelMetadata], bool]) -> None:
        self._accepts = accepts
        self._lacking: dict[str, AttributeError] = {}
        self._asked: list[KernelMetadata] = []

    def __call__(self, metadata: KernelMetadata) -> bool:
        self._asked.append(metadata)
        try:
            return bool(self._accepts(metadata))
        except AttributeError as error:
            if error.name is None or not _is_of_a_lacking_field(error):
                raise
            self._lacking.setdefault(error.name, error)
            return False

    def refuse_unknown_fields(self) -> None:
        """AttributeError for a field that neither a queried kernel nor the documentation of designs has."""
        if not self._lacking:
            return
        known = _OF_DESIGNS.union(*(asked.design or () for asked in self._asked))
        for name, error in self._lacking.items():
            if name not in known and name not in _OF_OPTIONAL_PARTS:
                raise AttributeError(f"{error}{_suggestion(name, known)}", name=name, obj=error.obj)


def _is_of_a_lacking_field(error: AttributeError) -> bool:
    """True where a design, or a part that is None, was asked for a field."""
    return isinstance(error.obj, DesignMetadata) or error.obj is None


def _suggestion(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
