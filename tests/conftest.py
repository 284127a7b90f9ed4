"""What all tests share: profiles of Hypothesis, markers, the shared data, the lifecycles counted, the command."""

import logging
import os
import sys
from collections.abc import Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from quadriga.fsm import LIFECYCLES
from quadriga.fsm.pytest_plugin import track

REPOSITORY = Path(__file__).resolve().parents[1]

# Workers of pytest-xdist are measured, and not the programs that a test starts.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)

for each in LIFECYCLES.values():
    track(each)

# No test depends on the wall clock, so none has a deadline.
settings.register_profile("dev", max_examples=50, deadline=None)
# The same examples every time: a red build is red again on the next machine.
settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Where it is not about finding something new: other versions of the libraries.
settings.register_profile("few", parent=settings.get_profile("ci"), max_examples=10)
settings.register_profile("thorough", parent=settings.get_profile("dev"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--one-case", action="store_true", help="of each test with parameters, the first case only"
    )


def pytest_configure(config: pytest.Config) -> None:
    if engine := os.environ.get("QUADRIGA_TEST_ENGINE"):
        _run_on(engine)
    config.addinivalue_line(
        "markers",
        'slow: takes more than ten seconds; tox -e slow runs it, -m "not slow" leaves it out',
    )
    config.addinivalue_line(
        "markers",
        "cluster: needs a control plane of Kubernetes (.ci/cluster); tox -e kubernetes runs it, "
        "and no other environment",
    )
    config.addinivalue_line(
        "markers",
        "interpreted: replaces something inside of a module, or derives from a class in there, "
        "which can only be done where it is not compiled",
    )


def _run_on(engine: str) -> None:
    """Let every scheduler whose test names no engine run on this one (``Options.engine``)."""
    options: Any = import_module("quadriga.core").Options
    initialise = options.__init__

    def with_engine(self: Any, *args: Any, **settings: Any) -> None:
        initialise(self, *args, **{"engine": engine, **settings})

    options.__init__ = with_engine


# A test that traced and did not say so would end the measurement of all later ones in its process.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    before = sys.gettrace()
    yield
    if before is not None and sys.gettrace() is not before:
        pytest.fail("the test replaced the trace function of coverage and did not set it again")


# pytest-xdist kills a worker that has not ended ten seconds after its last test, and with it what was measured
# there: on a busy machine a run whose tests all passed then seems to cover four fifths.
@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    if "PYTEST_XDIST_WORKER" in os.environ and "coverage" in sys.modules:
        measured = sys.modules["coverage"].Coverage.current()
        if measured is not None:
            measured.stop()
            measured.save()


# After the marks have been looked at: the first case may be a slow one.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--one-case"):
        kept: dict[str, pytest.Item] = {}
        further = [i for i in items if kept.setdefault(i.nodeid.partition("[")[0], i) is not i]
        config.hook.pytest_deselected(items=further)
        items[:] = kept.values()
    inside = [item for item in items if item.get_closest_marker("interpreted")]
    if inside and not str(import_module("quadriga.core.scheduling.batch").__file__).endswith(".py"):
        for item in inside:
            item.add_marker(pytest.mark.skip(reason="looks inside of what is compiled here"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """QUADRIGA_SHARED, by default ../shared: what no clone has. Required with QUADRIGA_REQUIRE_SHARED=1."""
    folder = Path(os.environ.get("QUADRIGA_SHARED") or REPOSITORY.parent / "shared")
    # A relative one counts from the checkout, wherever pytest was started.
    folder = (REPOSITORY / folder).resolve()
    if (folder / "data").is_dir():
        return folder
    missing = f"no shared data in {folder}: set QUADRIGA_SHARED to the folder that has it"
    if os.environ.get("QUADRIGA_REQUIRE_SHARED") == "1":
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(params=["design", "k8shim"])
def order(request: pytest.FixtureRequest) -> str:
    """Both message orders of X8."""
    return str(request.param)


@pytest.fixture
def no_bugs(caplog: pytest.LogCaptureFixture) -> Generator[None, None, None]:
    """Nothing may be logged as our mistake."""
    caplog.set_level(logging.WARNING)
    yield
    records = caplog.get_records("call")
    found = [r.getMessage() for r in records if r.levelno >= logging.ERROR or r.exc_info]
    # gRPC's own, when the loop of an earlier test is gone
    assert not [text for text in found if "PollerCompletionQueue" not in text]


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def quadriga(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """``quadriga("draw", "node")`` gives the exit code and both outputs."""
    main = import_module("quadriga.cli.main").main

    def run(*arguments: object) -> Done:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        return Done(code, *capsys.readouterr())

    return run
