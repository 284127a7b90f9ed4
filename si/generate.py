"""Make the code for the messages from ``si/v1/si.proto``: ``python -m quadriga.si.generate``.

With ``--check`` nothing is written: the exit status is 1, and the difference is shown, when the
committed code is not what the generator makes of the .proto. The script imports nothing of ours,
so that ``python si/generate.py`` repairs a checkout whose generated code cannot be imported.
"""

import argparse
import difflib
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path

# Generated code runs on the protobuf it was made for and on later ones, so the oldest generator
# that suits us decides which runtimes our users may have. It must be this one exactly: another
# makes other text, and --check would report drift where there is none.
GENERATOR = "1.68.1"

HERE = Path(__file__).resolve().parent
# The virtual folder makes the name in the descriptor pool, and imports, those of the package.
VIRTUAL = "quadriga/si"
PROTO = "v1/si.proto"
OUTPUTS = ("v1/si_pb2.py", "v1/si_pb2.pyi")


class GeneratorError(Exception):
    """The generator is missing, is another version, or refused the .proto. The text says which."""


def generate(source: Path) -> dict[str, str]:
    """What the generator makes of the .proto below `source`: path below `source` -> text.

    Raises GeneratorError.
    """
    try:
        found = metadata.version("grpcio-tools")
    except metadata.PackageNotFoundError:
        found = "none"
    if found != GENERATOR:
        raise GeneratorError(
            f"needs grpcio-tools {GENERATOR} (found: {found}); "
            f"try: pip install grpcio-tools=={GENERATOR}"
        )
    protoc = import_module("grpc_tools.protoc")
    google = Path(str(protoc.__file__)).parent / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        status = protoc.main(
            [
                "protoc",
                f"-I{VIRTUAL}={source}",
                f"-I{google}",
                f"--python_out={folder}",
                f"--pyi_out={folder}",
                f"{VIRTUAL}/{PROTO}",
            ]
        )
        if status != 0:
            raise GeneratorError(f"protoc refused {PROTO} with status {status}")
        made = Path(folder) / VIRTUAL
        texts = {path: (made / path).read_text(encoding="utf-8") for path in OUTPUTS}
        return {
            path: _strict(text) if path.endswith(".pyi") else text for path, text in texts.items()
        }


def _strict(stub: str) -> str:
    # What mypy --strict rejects in the stubs of this generator: a ClassVar outside of a class, and
    # a Mapping that does not say of what.
    stub = re.sub(r"^(\w+): _ClassVar\[(\w+)\]$", r"\1: \2", stub, flags=re.MULTILINE)
    stub = re.sub(r"\b_Mapping\](?=\])", "_Mapping[str, _Any]]", stub)
    return stub.replace("from typing import ", "from typing import Any as _Any, ", 1)


def drift(made: dict[str, str], folder: Path) -> Iterator[str]:
    """The lines of a unified diff from the files below `folder` to what was `made`."""
    for path, text in made.items():
        committed = folder / path
        old = committed.read_text(encoding="utf-8") if committed.exists() else ""
        yield from difflib.unified_diff(
            old.splitlines(), text.splitlines(), f"si/{path}", f"si/{path} (generated)", lineterm=""
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 0, 1 for drift, 2 for no generator."""
    parser = argparse.ArgumentParser(prog="python -m quadriga.si.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check: bool = parser.parse_args(arguments).check
    try:
        made = generate(HERE)
    except GeneratorError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    if check:
        difference = list(drift(made, HERE))
        print("\n".join(difference) if difference else "generated code is up to date")
        return 1 if difference else 0
    for path, text in made.items():
        (HERE / path).write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
