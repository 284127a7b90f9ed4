"""Generate the Python code of the protocol from its .proto files: ``python -m
quadriga.si.generate``.

With ``--check`` nothing is written: if the committed code differs from the generated code, the
difference is shown and the exit status is 1. The script imports nothing of ours, so ``python
si/generate.py`` also works in a checkout whose generated code cannot be imported.
"""

import argparse
import difflib
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

# Generated code runs on the protobuf version it was generated for and on later ones. The oldest
# suitable generator therefore supports the most runtimes. It must be exactly this version: another
# one generates other text, and --check would report a difference.
GENERATOR = "1.68.1"

HERE = Path(__file__).resolve().parent
# Names in the descriptor pool, and imports, follow this virtual folder rather than the real one.
VIRTUAL = "quadriga/si"
PROTOS = ("v1/si.proto", "extension/extension.proto")
OUTPUTS = tuple(
    proto.removesuffix(".proto") + ending
    for proto in PROTOS
    for ending in ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi")
)


class GeneratorError(Exception):
    """The generator is missing, has another version, or rejected the .proto files. The text says
    which."""


def generate(source: Path) -> dict[str, str]:
    """Generate the code of the .proto files below `source`. Returns path below `source` -> text.

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
                f"--grpc_python_out={folder}",
                f"--descriptor_set_out={folder}/descriptors",
                *(f"{VIRTUAL}/{proto}" for proto in PROTOS),
            ]
        )
        if status != 0:
            raise GeneratorError(f"protoc refused {' or '.join(PROTOS)} with status {status}")
        made = Path(folder) / VIRTUAL
        services = _services(Path(folder, "descriptors").read_bytes())
        texts = {}
        for path in OUTPUTS:
            if path.endswith("_grpc.pyi"):
                texts[path] = services[path]
            else:
                text = (made / path).read_text(encoding="utf-8")
                texts[path] = _strict(text) if path.endswith(".pyi") else text
        return texts


def _services(descriptors: bytes) -> dict[str, str]:
    # The generator makes no stubs for services. These stubs type the messages of each method, for
    # channels of grpc and of grpc.aio.
    known = import_module("google.protobuf.descriptor_pb2").FileDescriptorSet.FromString(
        descriptors
    )
    return {
        f"{file.name.removeprefix(VIRTUAL + '/').removesuffix('.proto')}_pb2_grpc.pyi": _stub(file)
        for file in known.file
    }


def _stub(file: Any) -> str:
    modules = {
        name.removesuffix(".proto").replace("/", ".") + "_pb2"
        for name in (file.name, *file.dependency)
        if name.startswith(VIRTUAL)
    }
    # each protobuf package is one module
    homes = {module.split(".")[-2]: module for module in modules}
    names = {"si.v1": homes.get("v1", ""), "quadriga.v1": homes.get("extension", "")}

    def message(full_name: str) -> str:
        package, _, name = full_name.removeprefix(".").rpartition(".")
        return f"{names[package]}.{name}"

    lines = ["from typing import Any, overload", "", "import grpc", "import grpc.aio", ""]
    lines += [f"import {module}" for module in sorted(modules)]
    for service in file.service:
        calls = []
        for method in service.method:
            kind = "".join(
                "Stream" if streams else "Unary"
                for streams in (method.client_streaming, method.server_streaming)
            )
            types = f"{message(method.input_type)}, {message(method.output_type)}"
            calls.append((method.name, f"{kind}MultiCallable[{types}]"))
        lines += [
            "",
            f"class {service.name}Stub:",
            "    @overload",
            f"    def __new__(cls, channel: grpc.aio.Channel) -> {service.name}AsyncStub: ...",
            "    @overload",
            f"    def __new__(cls, channel: grpc.Channel) -> {service.name}Stub: ...",
            *(f"    {name}: grpc.{kind}" for name, kind in calls),
            "",
            f"class {service.name}AsyncStub({service.name}Stub):  # exists for types only",
            *(f"    {name}: grpc.aio.{kind}  # type: ignore[assignment]" for name, kind in calls),
            "",
            f"class {service.name}Servicer:",
            *(f"    def {name}(self, request: Any, context: Any) -> Any: ..." for name, _ in calls),
            "",
            f"def add_{service.name}Servicer_to_server(",
            f"    servicer: {service.name}Servicer, server: grpc.Server | grpc.aio.Server",
            ") -> None: ...",
        ]
    return "\n".join(lines) + "\n"


def _strict(stub: str) -> str:
    # mypy --strict rejects two things in this generator's stubs: a ClassVar outside a class, and a
    # Mapping without type arguments.
    stub = re.sub(r"^(\w+): _ClassVar\[(\w+)\]$", r"\1: \2", stub, flags=re.MULTILINE)
    stub = re.sub(r"\b_Mapping\](?=\])", "_Mapping[str, _Any]]", stub)
    return stub.replace("from typing import ", "from typing import Any as _Any, ", 1)


def drift(made: dict[str, str], folder: Path) -> Iterator[str]:
    """A unified diff, line by line, from the files below `folder` to the generated texts."""
    for path, text in made.items():
        committed = folder / path
        old = committed.read_text(encoding="utf-8") if committed.exists() else ""
        yield from difflib.unified_diff(
            old.splitlines(), text.splitlines(), f"si/{path}", f"si/{path} (generated)", lineterm=""
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status: 0, 1 for a difference, 2 for a missing
    generator."""
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
