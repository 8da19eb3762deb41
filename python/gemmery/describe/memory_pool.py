# SPDX-License-Identifier: Apache-2.0
"""The library's memory pool of a GPU, by PyCUTLASS's names. A framework's RMM pool is not touched."""

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
        """Bytes that are in use."""
        return int(_core.pool_statistics(self.device)["used_bytes"])

    def pool_size(self) -> int:
        """Bytes that the pool has reserved from the driver."""
        return int(_core.pool_statistics(self.device)["reserved_bytes"])

    def __repr__(self) -> str:
        return f"PoolMemoryManager({self.device}: {self.get_allocated_size()} of {self.pool_size()} bytes given out)"


def get_memory_pool(init_pool_size: int = 0, max_pool_size: int = 2**34, *, device: str | None = None) -> PoolMemoryManager:
    """Sets the bytes that the pool reserves at once and the limit above which OutOfMemoryError is raised. The library has
    this pool even without a call; it does not replace torch's, CuPy's or RMM's."""
    where = device or devices.device()
    initial, limit = (
        whole_number(size, name, _BYTES)
        for size, name in ((init_pool_size, "init_pool_size"), (max_pool_size, "max_pool_size"))
    )
    _core.configure_pool(where, initial, limit)
    return PoolMemoryManager(where)


def get_allocated_size(device: str | None = None) -> int:
    """Bytes of the pool that are in use; 0 once arguments with staged operands, and the output_op of visitors that
    ran, no longer exist."""
    return PoolMemoryManager(device or devices.device()).get_allocated_size()
