"""The file of ``--config``: read at the start, and again whenever somebody says so."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from quadriga.cli.config import line, listed

__all__ = ["QueuesFile", "QueuesFileError"]

#: a configuration that is longer than this is some other file
_MOST_BYTES: Final = 16 << 20


class QueuesFileError(ValueError):
    """It cannot be used. ``lines`` say everything that is wrong, as ``quadriga config check``."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class QueuesFile:
    """``read`` gives its text; ``warnings`` are those of the last text that was good."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []

    def read(self) -> str:
        """Raises `QueuesFileError`."""
        from quadriga.core.config import ConfigError, load

        name = str(self.path)
        try:
            with self.path.open("rb") as stream:
                data = stream.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise QueuesFileError([f"{name}: longer than {_MOST_BYTES} bytes"])
            text = data.decode("utf-8-sig")
            configuration = load(text)
        except OSError as error:
            raise QueuesFileError([f"{name}: {error.strerror}"]) from None
        except UnicodeDecodeError:
            raise QueuesFileError([f"{name}: not UTF-8 text"]) from None
        except ConfigError as error:
            lines = [line(name, each) for each in listed(error.problems)]
            more = [f"{name}: and {error.more} more"] if error.more else []
            raise QueuesFileError(lines + more) from None
        self.warnings = [line(name, each, "warning: ") for each in listed(configuration.warnings)]
        return text
