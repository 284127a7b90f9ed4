"""``python -m quadriga.diagrams DIRECTORY``: write the gallery."""

from __future__ import annotations

import sys

from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.gallery import write_gallery


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m quadriga.diagrams DIRECTORY", file=sys.stderr)
        return 2
    try:
        written = write_gallery(arguments[0])
    except DiagramError as error:
        print(f"quadriga.diagrams: {error}", file=sys.stderr)
        return 1
    print(f"{len(written)} files in {arguments[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
