# SPDX-License-Identifier: Apache-2.0
"""Options of the whole process. Those of the library are environment variables: docs/environment.md."""

from __future__ import annotations

from typing import Any

from gemmery.errors import UnsupportedError

__all__ = ["GlobalOptions"]


class GlobalOptions:
    """One object for the process, however often it is asked for.

    verify: `gemmery.matmul` holds every result against the oracle, as with verify=True. Slow: for tests.
    use_tvm_ffi: False always; tensors are exchanged by DLPack's C functions, which need no package.
    """

    _instance: GlobalOptions | None = None
    verify: bool

    def __new__(cls) -> GlobalOptions:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance.verify = False
        return cls._instance

    @property
    def use_tvm_ffi(self) -> bool:
        return False

    @use_tvm_ffi.setter
    def use_tvm_ffi(self, value: bool) -> None:
        if value:
            raise UnsupportedError(
                "use_tvm_ffi: tensors are exchanged by DLPack's C functions, as fast and without the package"
            )

    def save(self) -> dict[str, Any]:
        return {"verify": self.verify}

    def restore(self, saved: dict[str, Any]) -> None:
        self.verify = bool(saved["verify"])
