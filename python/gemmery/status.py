# SPDX-License-Identifier: Apache-2.0
"""The result of a check: success, or failure with the reason."""

from __future__ import annotations

__all__ = ["Status"]


class Status:
    """The result of `supports`: true, or false with an `error` that gives the reason."""

    __slots__ = ("error",)

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    @classmethod
    def success(cls) -> Status:
        """A status that is true."""
        return cls()

    @classmethod
    def fail(cls, error: str | Exception) -> Status:
        """A failure; a text becomes a ValueError."""
        return cls(error if isinstance(error, Exception) else ValueError(error))

    def raise_on_error(self) -> None:
        """Raises the error, if there is one."""
        if self.error is not None:
            raise self.error

    def __bool__(self) -> bool:
        return self.error is None

    def __repr__(self) -> str:
        return "Status.success()" if self else f"Status.fail({str(self.error)!r})"
