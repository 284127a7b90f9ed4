"""Lines of the log: for people, for programs, and never with a secret in them."""

import io
import json
import logging

import pytest

from quadriga.cli.serving import logs
from quadriga.si import RegisterResourceManagerRequest

pytestmark = pytest.mark.usefixtures("logging_as_before")


@pytest.fixture(params=["text", "json"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def logger(form: str, level: str = "info") -> tuple[logging.Logger, io.StringIO]:
    out = io.StringIO()
    logs.set_up(level, form, out)
    return logging.getLogger("quadriga.test"), out


def test_a_line_has_the_ids_that_were_given_and_is_an_object_for_programs() -> None:
    log, out = logger("json")
    log.warning("%s is away", "rm-1", extra={"rm_id": "rm-1", "application_id": "app-7"})
    told = json.loads(out.getvalue())
    assert told.pop("time").endswith("+00:00")
    assert told == {
        "level": "warning",
        "logger": "quadriga.test",
        "message": "rm-1 is away",
        "rm_id": "rm-1",
        "application_id": "app-7",
    }
    log, out = logger("text")  # for people, too
    log.info("away", extra={"rm_id": "rm-1"})
    assert out.getvalue().rstrip().endswith("INFO    quadriga.test: away rm_id=rm-1")


def test_an_exception_is_told_with_its_story(form: str) -> None:
    log, out = logger(form)
    try:
        raise ValueError("no")
    except ValueError:
        log.exception("failed")
    text = out.getvalue()
    if form == "json":
        text = json.loads(text)["exception"]
    assert "Traceback" in text
    assert text.rstrip().endswith("ValueError: no")


def test_a_name_can_forge_neither_a_line_nor_the_terminals_commands(form: str) -> None:
    log, out = logger(form)
    evil = 'rm\n2026-01-01 CRITICAL x: all is lost\x1b[2J\u2028"}'
    log.warning("from %s", evil, extra={"rm_id": evil})
    text = out.getvalue()
    assert text.count("\n") == 1
    assert text.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    "text", ["Authorization: Bearer s3cr3t-s3cr3t", "bearer  s3cr3t-s3cr3t", "plain:s3cr3t-s3cr3t"]
)
def test_what_looks_like_a_token_is_not_told(form: str, text: str) -> None:
    log, out = logger(form)
    log.error("%s", text, extra={"peer": text})
    try:
        raise ValueError(text)
    except ValueError:
        log.exception("it")
    assert "s3cr3t" not in out.getvalue()


def test_a_message_of_the_protocol_is_told_as_it_may_be(form: str) -> None:
    log, out = logger(form)
    log.info("got %s", RegisterResourceManagerRequest(rmID="rm-1", version="1"))
    text = json.loads(out.getvalue())["message"] if form == "json" else out.getvalue()
    assert 'got rmID: "rm-1" version: "1"' in text


def test_a_line_has_an_end_and_is_told_although_it_is_wrong(form: str) -> None:
    """But not below the level."""
    log, out = logger(form, "warning")
    log.info("not this")
    log.warning("x" * 1_000_000)
    logging.getLogger("uvicorn.error").warning("what a client did wrong")
    log.warning("%d pods", "three")
    long, wrong = out.getvalue().splitlines()
    assert len(long) < 20_000
    assert "(1000000 characters)" in long
    assert "three" in wrong
