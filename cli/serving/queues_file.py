"""The file of ``--config``: read at the start and on every reload."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from quadriga.cli.config import line, listed

#: bytes; a larger file is not a configuration
_MOST_BYTES: Final = 16 << 20


class QueuesFileError(ValueError):
    """The file cannot be used. ``lines`` has all problems, as printed by ``quadriga config
    check``."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class QueuesFile:
    """``read`` returns the text; ``warnings`` belong to the last valid text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []

    def read(self) -> str:
        """The text of the file. Raises `QueuesFileError`."""
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
