"""Write the committed pictures again, after a change of a lifecycle's table.

``python -m quadriga.diagrams --layouts FILE`` writes the coordinates from which the pages of the web server
draw, and ``--messages FILE`` the dispatcher's table as a page. The gallery is written by ``quadriga draw --all``.
"""

from __future__ import annotations

import sys

from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.layout import write_layouts

_USAGE = "usage: python -m quadriga.diagrams --layouts FILE | --messages FILE"


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case ["--layouts", file]:
                write_layouts(file)
                print(f"layouts in {file}")
            case ["--messages", file]:
                # the scheduler is imported for this page only
                from quadriga.diagrams.messages import write_messages

                write_messages(file)
                print(f"messages in {file}")
            case _:
                print(_USAGE, file=sys.stderr)
                return 2
    except DiagramError as error:
        print(f"quadriga.diagrams: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
