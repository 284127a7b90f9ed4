"""The gate, .ci/run, on a checkout of three files, with a README whose test command is a stub."""

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
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    checkout = tmp_path / "checkout"
    shutil.copytree(REPOSITORY / ".ci", checkout / ".ci")
    stub(checkout / ".venv" / "bin", "tox", 'echo "tox $*"; exit ${REST_OF_THE_GATE:-0}')
    stub(
        checkout / ".tox" / "tests" / "bin", "coverage", 'echo "coverage $*"; exit ${LINES_ARE:-0}'
    )
    stub(checkout / ".tox" / "tests" / "bin", "python", "echo py313-.*-newest")
    # Nothing is installed by a test.
    for name in ("dot", "apt-get", "sudo"):
        stub(tmp_path / "bin", name, f"echo {name} $*")
    stub(tmp_path / "control-plane", "etcd")
    (tmp_path / "real-programs-1").mkdir()

    def run(command: str = PASSES, **settings: str) -> subprocess.CompletedProcess[str]:
        (checkout / "README.md").write_text(
            f"```sh\nexit 99\n```\n<!-- run: the tests -->\n```sh\n{command}\n```\n```sh\nexit 98\n```\n",
            encoding="utf-8",
        )
        ours = ("QUADRIGA_", "COVERAGE_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
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


def test_the_readme_command_the_rest_and_the_closing_line_follow(gate: Gate, data: Path) -> None:
    told = 'echo "$QUADRIGA_RUN_TESTS; $QUADRIGA_REQUIRE_SHARED in $QUADRIGA_SHARED"'
    done = gate(f"{told} && {PASSES}")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    measured = "pytest --fsm-coverage --fsm-coverage-min=100"
    assert f"{measured}; 1 in {data}" in {each.removeprefix("coverage run -m ") for each in lines}
    rest = "tox run-parallel --parallel auto -m gate --skip-env ^(tests|py313-.*-newest)$"
    assert rest in lines, "the interpreter of the tests is not tried twice"
    assert lines.index("tests ran") < lines.index(rest)
    assert lines[-1] == CLOSING


@pytest.mark.parametrize("code", [0, 1], ids=["Python 3.12", "Python 3.11"])
def test_lines_are_measured_where_that_costs_little(
    gate: Gate, data: Path, tmp_path: Path, code: int
) -> None:
    stub(tmp_path / "bin", "python3", f"exit {code}")
    told = 'echo "$QUADRIGA_RUN_TESTS by ${COVERAGE_CORE:-nothing}"'
    done = gate(f"{told} && {PASSES}", PYENV_ROOT=str(tmp_path), LINES_ARE="2")
    measured = (
        "coverage run -m pytest --fsm-coverage --fsm-coverage-min=100 by sysmon" in done.stdout
    )
    assert measured == (code == 0)
    assert done.returncode == (2 if measured else 0), "too few lines fail the gate"


@pytest.mark.parametrize(
    ("command", "rest", "code", "said"),
    [
        ("echo what went wrong; exit 7", "0", 7, "what went wrong"),
        (PASSES, "3", 3, "tests ran"),
        ("true", "0", 1, "ran no tests"),
    ],
    ids=["a failing test command", "a failure in the rest", "no tests"],
)
def test_the_gate_fails_for(
    gate: Gate, data: Path, command: str, rest: str, code: int, said: str
) -> None:
    done = gate(command, REST_OF_THE_GATE=rest)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert ("run-parallel" in done.stdout) == (code == 3)


def test_a_closing_line_of_an_earlier_run_does_not_count(gate: Gate, data: Path) -> None:
    assert gate().returncode == 0
    assert gate("true").returncode == 1


def test_shared_data_may_be_elsewhere(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "data").mkdir(parents=True)
    done = gate(f'echo "in $QUADRIGA_SHARED" && {PASSES}', QUADRIGA_SHARED="../elsewhere")
    assert f"in {tmp_path / 'elsewhere'}" in done.stdout


def test_missing_shared_data_fails_the_gate_at_once_unless_it_is_allowed(gate: Gate) -> None:
    done = gate()
    assert done.returncode == 1
    assert "must not skip" in done.stderr
    assert "tests ran" not in done.stdout
    command = f'echo "required: ${{QUADRIGA_REQUIRE_SHARED:-no}}." && {PASSES}'
    done = gate(command, QUADRIGA_ALLOW_MISSING_SHARED="1")
    assert done.returncode == 0, done.stderr
    assert "ARE SKIPPED" in done.stderr
    assert "required: no." in done.stdout


INSTALL = "apt-get install --yes --no-install-recommends"
UPDATE, VENV = "apt-get update", f"{INSTALL} python3-venv"
PICTURES = "Please install: graphviz fonts-liberation"
NO_VENV = "Please install: python3-venv"
APT, ALL = "apt-get", "apt-get dot fc-list"
#: by what is there: these commands, what is asked for, what Python lacks, what is refused; then the exit
#: status, the lines of the output, and what the errors say
# fmt: off
MACHINES: dict[str, tuple[str, str, str, str, int, list[str], str]] = {
    "missing packages are installed": (APT, "pictures", "ensurepip", "", 0,
        [UPDATE, VENV, f"{INSTALL} graphviz", f"{INSTALL} fonts-liberation"], ""),
    "where venv works nothing is unless it is asked for": (f"{APT} sudo", "", "", "", 0, [], ""),
    "what is there is left alone": (f"{ALL} sudo", "pictures", "ensurepip", "", 0,
        [f"as root: {UPDATE}", f"as root: {VENV}"], ""),
    "all is there": (ALL, "pictures", "", "", 0, [], ""),
    "no apt": ("", "pictures", "ensurepip", "", 1, [],
        "Please install: python3-venv graphviz fonts-liberation"),
    **{f"{wanted or 'venv'}, {refused} is refused{sudo}": (f"{APT}{sudo}", wanted, lacking, refused, code, [], said)
       for refused in ("update", "install") for sudo in ("", " sudo")
       for wanted, lacking, code, said in (("pictures", "", 0, PICTURES), ("", "ensurepip", 1, NO_VENV))},
    "one that cannot be had keeps no other away": (APT, "pictures", "ensurepip", "graphviz", 0,
        [UPDATE, VENV, f"{INSTALL} graphviz", f"{INSTALL} fonts-liberation"], "Please install: graphviz\n"),
    "a browser": (ALL, "browser", "", "", 0, [UPDATE, f"{INSTALL} chromium"], ""),
    "a browser is there": (f"{ALL} chromium", "browser", "", "", 0, [], ""),
    "libseccomp": (f"{ALL} chromium", "browser", "libseccomp", "", 0,
        [UPDATE, f"{INSTALL} libseccomp2"], ""),
    "a browser can wait": ("dot fc-list", "browser", "", "", 0, [], "Please install: chromium"),
    "Spark": (ALL, "kubernetes", "", "", 0,
        [UPDATE, f"{INSTALL} default-jre-headless", f"{INSTALL} openssl"], ""),
    "Spark is there": (f"{ALL} java openssl", "kubernetes", "", "", 0, [], ""),
}
# fmt: on


@pytest.mark.parametrize("machine", MACHINES)
def test_packages_of_a_machine(tmp_path: Path, machine: str) -> None:
    """Where only some commands exist. apt-get, or sudo, fails for commands with the refused word."""
    present, wanted, lacking, refused, code, lines, error = MACHINES[machine]
    folder = tmp_path / "only"
    stub(folder, "python3", f'[[ "$*" != *{lacking or "nothing"}* ]]')
    stub(folder, "id", f"echo {1000 if 'sudo' in present else 0}")
    for name in present.split():
        said = "as root:" if name == "sudo" else name
        fails = f'\n[[ "$*" != *{refused}* ]]' if refused and name in ("sudo", "apt-get") else ""
        stub(folder, name, f'echo {said} "$@"{fails}')
    bash = shutil.which("bash")
    assert bash
    done = subprocess.run(
        [bash, REPOSITORY / ".ci" / "packages", *wanted.split()],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert error in done.stderr
    if refused in ("", "graphviz"):
        assert done.stdout.splitlines() == lines


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


def test_the_gate_insists_on_a_control_plane(gate: Gate, data: Path, tmp_path: Path) -> None:
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


def test_k211_no_folder_of_somebody_elses_is_replaced(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "kube-apiserver").write_text("theirs")
    done = subprocess.run(
        [repository / ".ci" / "cluster"],
        env={**os.environ, "QUADRIGA_CLUSTER": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"{tmp_path} has no etcd, and is not ours to replace" in done.stderr
    assert (tmp_path / "kube-apiserver").read_text() == "theirs"
