# SPDX-License-Identifier: Apache-2.0
"""The library's memory pool of a GPU by PyCUTLASS's names. RMM, where a framework uses it, is left alone."""

from __future__ import annotations

from gemmery import _core
from gemmery.describe import devices
from gemmery.describe.coordinates import whole_number

__all__ = ["PoolMemoryManager", "get_allocated_size", "get_memory_pool"]

_BYTES = range(2**64)


class PoolMemoryManager:
    """The pool of one device, from which staged operands and workspaces come."""

    def __init__(self, device: str) -> None:
        self.device = device

    def get_allocated_size(self) -> int:
        """Bytes that are given out now."""
        return int(_core.pool_statistics(self.device)["used_bytes"])

    def pool_size(self) -> int:
        """Bytes that are held from the driver now."""
        return int(_core.pool_statistics(self.device)["reserved_bytes"])

    def __repr__(self) -> str:
        return f"PoolMemoryManager({self.device}: {self.get_allocated_size()} of {self.pool_size()} bytes given out)"


def get_memory_pool(init_pool_size: int = 0, max_pool_size: int = 2**34, *, device: str | None = None) -> PoolMemoryManager:
    """Sets up the pool: so many bytes held at once, and a limit beyond which OutOfMemoryError is raised. The pool is the
    library's own and set up whether it is asked for or not; it does not replace torch's, CuPy's or RMM's."""
    where = device or devices.device()
    initial, limit = (
        whole_number(size, name, _BYTES)
        for size, name in ((init_pool_size, "init_pool_size"), (max_pool_size, "max_pool_size"))
    )
    _core.configure_pool(where, initial, limit)
    return PoolMemoryManager(where)


def get_allocated_size(device: str | None = None) -> int:
    """Bytes of the pool that are given out now; 0 once arguments with staged operands, and the output_op of visitors that
    ran, are gone."""
    return PoolMemoryManager(device or devices.device()).get_allocated_size()
