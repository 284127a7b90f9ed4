"""What deploy/ says, for the tests of it."""

from tests.packaging.conftest import REPOSITORY, text_of

DEPLOY = REPOSITORY / "deploy"


def lines_of(name: str) -> list[str]:
    lines = text_of(DEPLOY / name).splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def unit() -> dict[str, list[tuple[str, str]]]:
    """Sections of the systemd unit, with keys as often as they come."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for line in lines_of("quadriga.service"):
        if line.startswith("["):
            sections[line.strip("[]")] = []
        else:
            key, _, value = line.partition("=")
            sections[next(reversed(sections))].append((key, value))
    return sections


def instructions() -> list[tuple[str, str]]:
    """Those of the container file."""
    return [(word, rest) for word, _, rest in (x.partition(" ") for x in lines_of("Containerfile"))]
