"""The gate, .ci/run, on a checkout of three files, with a README whose test command is a stub."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CLOSING = "==== 3 passed, 1 skipped in 1.00s ===="
LOG = ".tox/tests/log"
PASSES = f"mkdir -p {LOG} && echo '{CLOSING}' > '{LOG}/4-commands[0].log' && echo tests ran"

Gate = Callable[..., "subprocess.CompletedProcess[str]"]


def stub(folder: Path, name: str, script: str = "") -> None:
    """A command that does what the script says."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Runs the gate on a checkout whose test command is the one given."""
    checkout = tmp_path / "checkout"
    shutil.copytree(REPOSITORY / ".ci", checkout / ".ci")
    stub(checkout / ".tox" / "tests" / "bin", "coverage", 'echo "coverage $*"')
    stub(checkout / ".venv" / "bin", "tox", 'echo "tox $*"; exit ${REST_OF_THE_GATE:-0}')
    # Nothing is installed by a test.
    for name in ("dot", "apt-get", "sudo"):
        stub(tmp_path / "bin", name, f"echo {name} $*")
    stub(tmp_path / "control-plane", "etcd")
    (tmp_path / "real-programs-1").mkdir()

    def run(command: str = PASSES, **settings: str) -> subprocess.CompletedProcess[str]:
        (checkout / "README.md").write_text(
            "```sh\nexit 99\n```\n"
            f"<!-- run: the tests -->\n```sh\n{command}\n```\n"
            "```sh\nexit 98\n```\n",
            encoding="utf-8",
        )
        kept = {k: v for k, v in os.environ.items() if not k.startswith("QUADRIGA_")}
        kept["QUADRIGA_CLUSTER"] = str(tmp_path / "control-plane")
        return subprocess.run(
            [checkout / ".ci" / "run"],
            env={**kept, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", **settings},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Shared data where the gate looks for it by default."""
    (tmp_path / "shared" / "data").mkdir(parents=True)
    return tmp_path / "shared"


def test_last_line_is_the_closing_line_of_the_tests(gate: Gate, data: Path) -> None:
    done = gate()
    assert done.returncode == 0, done.stderr
    assert "tests ran" in done.stdout
    assert done.stdout.splitlines()[-1] == CLOSING


def test_the_readme_command_measures_coverage_and_the_rest_of_the_gate_follows(
    gate: Gate, data: Path
) -> None:
    done = gate(f'echo "$QUADRIGA_RUN_TESTS" && {PASSES}')
    lines = done.stdout.splitlines()
    assert "coverage run -m pytest --fsm-coverage --fsm-coverage-min=100" in lines
    assert "coverage report --fail-under=95" in lines
    assert "tox run-parallel --parallel auto -m gate --skip-env ^tests$" in lines
    assert lines.index("tests ran") < lines.index(lines[-2])


def test_a_failing_test_command_fails_the_gate(gate: Gate, data: Path) -> None:
    done = gate("echo what went wrong; exit 7")
    assert done.returncode == 7
    assert "what went wrong" in done.stdout
    assert "run-parallel" not in done.stdout


def test_a_failure_in_the_rest_fails_the_gate(gate: Gate, data: Path) -> None:
    assert gate(REST_OF_THE_GATE="3").returncode == 3


def test_no_tests_fail_the_gate(gate: Gate, data: Path) -> None:
    done = gate("true")
    assert done.returncode == 1
    assert "ran no tests" in done.stderr


def test_a_closing_line_of_an_earlier_run_does_not_count(gate: Gate, data: Path) -> None:
    assert gate().returncode == 0
    assert gate("true").returncode == 1


def test_shared_data_is_insisted_on(gate: Gate, data: Path) -> None:
    done = gate(f'echo "$QUADRIGA_REQUIRE_SHARED in $QUADRIGA_SHARED" && {PASSES}')
    assert f"1 in {data}" in done.stdout


def test_shared_data_may_be_elsewhere(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "data").mkdir(parents=True)
    done = gate(f'echo "in $QUADRIGA_SHARED" && {PASSES}', QUADRIGA_SHARED="../elsewhere")
    assert f"in {tmp_path / 'elsewhere'}" in done.stdout


def test_missing_shared_data_fails_the_gate_at_once(gate: Gate) -> None:
    done = gate()
    assert done.returncode == 1
    assert "must not skip" in done.stderr
    assert "tests ran" not in done.stdout


def test_missing_shared_data_may_be_allowed(gate: Gate) -> None:
    command = f'echo "required: $QUADRIGA_REQUIRE_SHARED." && {PASSES}'
    done = gate(
        command.replace("$QUADRIGA_REQUIRE_SHARED", "${QUADRIGA_REQUIRE_SHARED:-no}"),
        QUADRIGA_ALLOW_MISSING_SHARED="1",
    )
    assert done.returncode == 0, done.stderr
    assert "ARE SKIPPED" in done.stderr
    assert "required: no." in done.stdout


def packages(
    tmp_path: Path,
    *present: str,
    wanted: tuple[str, ...] = (),
    venv: bool = False,
    refuses: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run .ci/packages where only these commands exist, and a Python without venv. apt-get, or sudo,
    fails for each command in which this word is."""
    folder = tmp_path / "only"
    answer = '[[ -z "$REFUSED" || "$*" != *"$REFUSED"* ]]'
    stub(folder, "python3", f'[[ "$*" != *ensurepip* ]] || exit {0 if venv else 1}')
    for name in present:
        stub(folder, name, f'echo {name} "$@"')
    if "apt-get" in present:
        stub(folder, "apt-get", f'echo apt-get "$@"\n{answer}')
    if "sudo" in present:
        stub(folder, "sudo", f'echo as root: "$@"\n{answer}')
        stub(folder, "id", "echo 1000")
    else:
        stub(folder, "id", "echo 0")
    bash = shutil.which("bash")
    assert bash
    return subprocess.run(
        [bash, REPOSITORY / ".ci" / "packages", *wanted],
        env={"PATH": str(folder), "REFUSED": refuses},
        capture_output=True,
        text=True,
        check=False,
    )


INSTALL = "apt-get install --yes --no-install-recommends"


def test_missing_packages_are_installed(tmp_path: Path) -> None:
    done = packages(tmp_path, "apt-get", wanted=("pictures",))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "apt-get update",
        f"{INSTALL} python3-venv",
        f"{INSTALL} graphviz",
        f"{INSTALL} fonts-liberation",
    ]


def test_where_venv_works_nothing_is_installed_unless_it_is_asked_for(tmp_path: Path) -> None:
    done = packages(tmp_path, "apt-get", "sudo", venv=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_packages_that_are_there_are_left_alone(tmp_path: Path) -> None:
    done = packages(tmp_path, "apt-get", "dot", "fc-list", "sudo", wanted=("pictures",))
    assert done.stdout.splitlines() == [
        "as root: apt-get update",
        f"as root: {INSTALL} python3-venv",
    ]
    present = ("apt-get", "dot", "fc-list")
    assert packages(tmp_path, *present, wanted=("pictures",), venv=True).stdout == ""


def test_without_apt_the_packages_are_named(tmp_path: Path) -> None:
    done = packages(tmp_path, wanted=("pictures",))
    assert done.returncode == 1
    assert "Please install: python3-venv graphviz fonts-liberation" in done.stderr


@pytest.mark.parametrize("refuses", ["update", "install"])
@pytest.mark.parametrize("root", [(), ("sudo",)])
def test_what_can_wait_fails_nothing(tmp_path: Path, refuses: str, root: tuple[str, ...]) -> None:
    """Where sudo refuses, or apt fails, and only pictures lack something."""
    done = packages(tmp_path, "apt-get", *root, wanted=("pictures",), venv=True, refuses=refuses)
    assert done.returncode == 0, done.stderr
    assert "Please install: graphviz fonts-liberation" in done.stderr
    done = packages(tmp_path, "apt-get", *root, refuses=refuses)
    assert done.returncode == 1
    assert "Please install: python3-venv" in done.stderr


def test_a_package_that_cannot_be_had_keeps_no_other_away(tmp_path: Path) -> None:
    done = packages(tmp_path, "apt-get", wanted=("pictures",), refuses="graphviz")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{INSTALL} fonts-liberation"
    assert "Please install: graphviz\n" in done.stderr


def test_a_browser_and_libseccomp_are_installed_for_those_who_ask_for_it(tmp_path: Path) -> None:
    there = ("apt-get", "dot", "fc-list")
    done = packages(tmp_path, *there, wanted=("browser",), venv=True)
    assert done.stdout.splitlines()[1:] == [f"{INSTALL} chromium"]
    done = packages(tmp_path, *there, "chromium", wanted=("browser",), venv=True)
    assert done.stdout == ""
    stub(tmp_path / "only", "python3", '[[ "$*" != *libseccomp* ]]')
    bash = shutil.which("bash")
    assert bash
    done = subprocess.run(
        [bash, REPOSITORY / ".ci" / "packages", "browser"],
        env={"PATH": str(tmp_path / "only"), "REFUSED": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[1:] == [f"{INSTALL} libseccomp2"]


def test_what_spark_needs_is_installed_for_those_who_ask_for_it(tmp_path: Path) -> None:
    there = ("apt-get", "dot", "fc-list")
    done = packages(tmp_path, *there, wanted=("kubernetes",), venv=True)
    assert done.stdout.splitlines()[1:] == [f"{INSTALL} default-jre-headless", f"{INSTALL} openssl"]
    done = packages(tmp_path, *there, "java", "openssl", wanted=("kubernetes",), venv=True)
    assert done.stdout == ""


def test_without_apt_a_browser_can_wait(tmp_path: Path) -> None:
    done = packages(tmp_path, "dot", "fc-list", wanted=("browser",), venv=True)
    assert done.returncode == 0
    assert "Please install: chromium" in done.stderr


def test_the_gate_insists_on_what_is_there(gate: Gate, data: Path, tmp_path: Path) -> None:
    """Fonts and libseccomp: where they are, their tests must not be skipped."""
    told = "echo fonts: ${QUADRIGA_REQUIRE_FONTS:-no} seccomp: ${QUADRIGA_REQUIRE_SECCOMP:-no}"
    stub(tmp_path / "bin", "fc-list", "echo /fonts/LiberationSans-Regular.ttf")
    stub(tmp_path / "bin", "python3", "exit 0")
    done = gate(f"{told} && {PASSES}", PYENV_ROOT=str(tmp_path))
    assert "fonts: 1 seccomp: 1" in done.stdout
    stub(tmp_path / "bin", "fc-list")
    stub(tmp_path / "bin", "python3", "exit 1")
    done = gate(f"{told} && {PASSES}", PYENV_ROOT=str(tmp_path))
    assert "fonts: no seccomp: no" in done.stdout
    assert done.stderr.count("IS SKIPPED") == 2


def test_the_gate_insists_on_a_control_plane_that_is_there(
    gate: Gate, data: Path, tmp_path: Path
) -> None:
    told = 'echo "cluster: ${QUADRIGA_REQUIRE_CLUSTER:-no} in ${QUADRIGA_CLUSTER:-no}"'
    done = gate(f"{told} && {PASSES}")
    assert f"cluster: 1 in {tmp_path / 'control-plane'}" in done.stdout
    # It cannot be built: nothing is downloaded by these stubs.
    done = gate(f"{told} && {PASSES}", QUADRIGA_CLUSTER=str(tmp_path / "nowhere"))
    assert done.returncode == 0, done.stderr
    assert "cluster: no in no" in done.stdout
    assert "the tests on one ARE SKIPPED" in done.stderr
    assert (tmp_path / "nowhere.failed.log").exists()
    assert not list(tmp_path.glob("nowhere.building.*"))
