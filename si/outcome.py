"""The outcome of a request that its sender does not wait for."""

from __future__ import annotations

from typing import Protocol


class Outcome(Protocol):
    """Receives the result of a request: a future, or an object with these two methods of one."""

    def set_result(self, result: None) -> None: ...

    def set_exception(self, exception: BaseException | None) -> None: ...
