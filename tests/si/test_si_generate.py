"""The committed code is what the generator makes of the .proto."""

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from quadriga.si import generate
from quadriga.si.v1 import si_pb2


@pytest.fixture(scope="module")
def source(repository: Path) -> Path:
    """The package's folder in the checkout; what is tested may be an installed copy."""
    return repository / "si"


@pytest.fixture(scope="module")
def made(source: Path) -> Iterator[dict[str, str]]:
    """The code, made anew."""
    try:
        yield generate.generate(source)
    except generate.GeneratorError as error:
        pytest.skip(f"the generator {error}")


def test_generated_code_is_up_to_date(source: Path, made: dict[str, str]) -> None:
    assert "\n".join(generate.drift(made, source)) == ""


def test_generated_code_is_installed_and_runs_on_the_oldest_protobuf(source: Path) -> None:
    code = (source / "v1" / "si_pb2.py").read_text(encoding="utf-8")
    assert Path(str(si_pb2.__file__)).read_text(encoding="utf-8") == code
    assert "# Protobuf Python Version: 5.28.1\n" in code
    assert si_pb2.DESCRIPTOR.name == "quadriga/si/v1/si.proto"
    assert si_pb2.AllocationAsk.__module__ == "quadriga.si.v1.si_pb2"


def test_drift_is_shown_as_a_diff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "si_pb2.py").write_text("old\n", encoding="utf-8")
    monkeypatch.setattr(generate, "HERE", tmp_path)
    monkeypatch.setattr(
        generate, "generate", lambda source: {"v1/si_pb2.py": "new\n", "v1/si_pb2.pyi": "stub\n"}
    )
    assert generate.main(["--check"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert {"-old", "+new", "+stub"} <= set(shown)
    assert (tmp_path / "v1" / "si_pb2.py").read_text(encoding="utf-8") == "old\n"

    assert generate.main([]) == 0
    assert (tmp_path / "v1" / "si_pb2.py").read_text(encoding="utf-8") == "new\n"
    assert generate.main(["--check"]) == 0


@pytest.mark.parametrize("found", ["none", "1.99.0"])
def test_missing_generator_is_one_line(
    found: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def version(name: str) -> str:
        if found == "none":
            raise metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(metadata, "version", version)
    assert generate.main(["--check"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"needs grpcio-tools 1.68.1 (found: {found})" in line
