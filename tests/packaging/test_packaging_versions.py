"""The versions that setup.cfg asks for: the lowest ones are tested, and the container's are locked."""

import configparser
import json
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.packaging.conftest import text_of
from tests.packaging.deployed import instructions

#: the extras that the container has
EXTRAS = ("grpc", "web", "kubernetes")
#: tox's environment with the lowest versions of all
LOWEST = "py311-protobuf5-lowest"


@pytest.fixture(scope="module")
def setup(repository: Path) -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read_string(text_of(repository / "setup.cfg"))
    return found


def requirements(text: str) -> dict[str, Requirement]:
    lines = (line.strip() for line in text.splitlines())
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(each.name): each for each in found}


def needed(setup: configparser.ConfigParser, *extras: str) -> dict[str, Requirement]:
    found = requirements(setup["options"]["install_requires"])
    for extra in extras:
        found |= requirements(setup["options.extras_require"][extra])
    return found


@pytest.fixture(scope="module")
def locked(repository: Path) -> list[tuple[Requirement, int]]:
    return entries(repository / "deploy" / "requirements.lock")


def entries(path: Path) -> list[tuple[Requirement, int]]:
    joined = re.sub(r"\\\n", "", text_of(path))
    lines = [line for line in joined.splitlines() if line and not line.lstrip().startswith("#")]
    found = []
    for line in lines:
        requirement, *hashes = re.split(r"\s+--hash=", line.strip())
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), line
        found.append((Requirement(requirement), len(hashes)))
    return found


def version_of(requirement: Requirement) -> Version:
    """The only version that it allows."""
    (specifier,) = requirement.specifier
    assert specifier.operator == "==", requirement
    return Version(specifier.version)


# -- the lowest ------------------------------------------------------------------------------------


def test_lowest_versions_are_tested(repository: Path, setup: configparser.ConfigParser) -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read_string(text_of(repository / "tox.ini"))
    pinned: dict[str, Version] = {}
    factors = set(LOWEST.split("-"))
    for line in tox["testenv"]["deps"].splitlines():
        condition, separator, text = line.partition(": ")
        if separator and "==" in text and set(condition.strip().split("-")) <= factors:
            each = Requirement(text)
            pinned[canonicalize_name(each.name)] = version_of(each)
    lowest = {
        name: Version(next(each.version for each in found.specifier if each.operator == ">="))
        for name, found in needed(setup, *EXTRAS, "diagrams", "cli").items()
    }
    assert pinned == lowest
    assert LOWEST in tox["tox"]["labels"].splitlines()[1], "the gate runs it"


def test_the_extra_all_is_the_sum_of_what_users_choose(setup: configparser.ConfigParser) -> None:
    (found,) = requirements(setup["options.extras_require"]["all"]).values()
    assert found.extras == {*EXTRAS, "diagrams", "cli"}


# -- the lock --------------------------------------------------------------------------------------


def test_the_lock_fits_what_the_package_asks_for(
    setup: configparser.ConfigParser, locked: list[tuple[Requirement, int]]
) -> None:
    versions: dict[str, list[Version]] = {}
    for each, _ in locked:
        versions.setdefault(canonicalize_name(each.name), []).append(version_of(each))
    for name, requirement in needed(setup, *EXTRAS).items():
        assert name in versions, f"{name} is not locked: run .ci/lock"
        for version in versions[name]:
            assert version in requirement.specifier, f"{name} {version}: run .ci/lock"


def test_nothing_more_is_locked(repository: Path, setup: configparser.ConfigParser) -> None:
    """Each entry names who does: the package itself, or another entry."""
    direct, indirect = set(), set()
    names: set[str] = set()
    for block in re.split(r"\n(?=\S)", text_of(repository / "deploy" / "requirements.lock"))[1:]:
        name, via = block.partition("==")[0], block.partition("# via")[2]
        names.add(name)
        by = {each.strip(" #") for each in via.splitlines()} - {""}
        assert by, f"{name}: for what?"
        if by & {"quadriga (setup.cfg)"}:
            direct.add(name)
        indirect |= by - {"quadriga (setup.cfg)"}
    assert direct == set(needed(setup, *EXTRAS))
    assert indirect <= names


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-build.lock"])
def test_every_entry_has_hashes(repository: Path, name: str) -> None:
    found = entries(repository / "deploy" / name)
    assert found
    assert [each.name for each, hashes in found if not hashes] == []
    seen = [(each.name, str(each.marker)) for each, _ in found]
    assert len(seen) == len(set(seen))


def test_the_bill_of_materials_lists_what_is_locked(
    repository: Path, locked: list[tuple[Requirement, int]]
) -> None:
    bill = json.loads(text_of(repository / "deploy" / "sbom.cdx.json"))
    assert bill["bomFormat"] == "CycloneDX"
    listed = {(each["name"], each["version"]) for each in bill["components"]}
    assert listed == {(each.name, str(version_of(each))) for each, _ in locked}


def test_the_build_lock_fits_the_build_backend(repository: Path) -> None:
    (wanted,) = re.findall(r'requires = \["(.+)"\]', text_of(repository / "pyproject.toml"))
    ((locked, _),) = entries(repository / "deploy" / "requirements-build.lock")
    requirement = Requirement(wanted)
    assert locked.name == requirement.name
    assert version_of(locked) in requirement.specifier


def test_the_container_installs_from_the_lock_and_nothing_else() -> None:
    installs = [rest for word, rest in instructions() if word == "RUN" and "pip" in rest]
    assert len(installs) == 4
    for each in installs:
        if "-r " in each:
            assert "--require-hashes" in each
        else:
            assert "--no-deps" in each
            assert "--no-build-isolation" in each or "--no-index" in each


def test_the_command_that_renews_the_lock_is_told(repository: Path) -> None:
    script = text_of(repository / ".ci" / "lock")
    assert tuple(re.findall(r"--extra (\w+)", script)) == EXTRAS
    assert "`.ci/lock`" in text_of(repository / "docs" / "operations.md")
    assert ".ci/lock" in text_of(repository / "docs" / "development.md")
