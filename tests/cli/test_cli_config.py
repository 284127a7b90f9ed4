"""``quadriga config check``: what people and programs are told, and how it ends."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from quadriga.core.config import load

GOOD = "partitions: [{queues: [{name: a}]}]\n"
BAD = """\
partitions:
- queues:
  - name: a!
    resources: {guaranteed: {memory: 2G}, max: {memory: 1G}}
    submitacl: a b c
"""
ODD = """\
partitions:
- queues:
  - name: a
    properties: {priority.offset: high}
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def to(name: str, text: str | bytes) -> str:
        data = text.encode() if isinstance(text, str) else text
        (tmp_path / name).write_bytes(data)
        return name

    return to


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (GOOD, 0, "a.yaml: valid\n"),
        ("\ufeff" + GOOD, 0, "a.yaml: valid\n"),
        ("partitions:\n- {name: [}\n", 1, "a.yaml:2: not YAML: "),
        (BAD, 1, "a.yaml:3: partitions[0].queues[0].name: 'a!' is not"),
        (ODD, 0, "a.yaml:4: warning: partitions[0].queues[0].properties.priority.offset: 'high'"),
    ],
    ids="valid byte-order-mark no-yaml problems warning".split(),
)
def test_what_is_wrong_is_told(
    quadriga: Any, write: Any, monkeypatch: pytest.MonkeyPatch, text: str, code: int, said: str
) -> None:
    done = quadriga("config", "check", write("a.yaml", text))
    assert (done.code, done.err) == (code, "")
    assert done.out.startswith(said)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    again = quadriga("config", "check", "-")
    assert again == (code, done.out.replace("a.yaml", "standard input"), "")


def test_every_problem_is_a_line_with_file_line_path_and_reason(quadriga: Any, write: Any) -> None:
    *problems, verdict = quadriga("config", "check", write("bad.yaml", BAD)).out.splitlines()
    at = "partitions[0].queues[0]"
    starts = (f"3: {at}.name: 'a!' is not", f"4: {at}.resources.guaranteed: ", f"5: {at}.submitacl")
    for line, start in zip(problems, starts, strict=True):
        assert line.startswith(f"bad.yaml:{start}")
    assert verdict == "bad.yaml: invalid (3 problems)"
    shown = quadriga("config", "show", "bad.yaml")
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.endswith("bad.yaml: invalid (3 problems)\n")
    assert quadriga("config", "show", "missing.yaml").code == 2


def test_json_for_programs(quadriga: Any, write: Any) -> None:
    names = [write("good.yaml", GOOD), write("bad.yaml", BAD), write("odd.yaml", ODD)]
    done = quadriga("config", "check", "--json", *names)
    assert done.code == 1
    told = json.loads(done.out)
    assert told["valid"] is False
    assert [each["file"] for each in told["files"] if each["valid"]] == ["good.yaml", "odd.yaml"]
    good, bad, odd = told["files"]
    assert len(good["checksum"]) == 64
    assert [problem["line"] for problem in bad["problems"]] == [3, 4, 5]
    assert set(bad["problems"][0]) == {"path", "line", "reason"}
    assert (odd["problems"], len(odd["warnings"])) == ([], 1)


def test_what_cannot_be_read_is_said_and_the_rest_is_checked(quadriga: Any, write: Any) -> None:
    write("latin.yaml", b"partitions: [{name: \xe9}]")
    write("bad.yaml", BAD)
    done = quadriga("config", "check", "missing.yaml", "latin.yaml", "bad.yaml")
    assert done.code == 2
    assert done.err.splitlines() == [
        "quadriga: missing.yaml: No such file or directory",
        "quadriga: latin.yaml: not UTF-8 text",
    ]
    assert done.out.endswith("bad.yaml: invalid (3 problems)\n")
    told = json.loads(quadriga("config", "check", "--json", "missing.yaml").out)
    assert told["files"][0]["error"] == "No such file or directory"


@pytest.mark.parametrize("arguments", [(), ("check",), ("mend", "x.yaml")])
def test_wrong_usage(quadriga: Any, arguments: tuple[str, ...]) -> None:
    done = quadriga("config", *arguments)
    assert done.code == 2
    assert "usage: quadriga config" in done.err


FULL = """\
partitions:
- limits: [{users: [ann, '*'], maxresources: {vcore: 4}}, {groups: [g], maxapplications: 3}]
  nodesortpolicy: {type: binpacking, resourceweights: {gpu: 2.5}}
  preemption: {enabled: false}
  placementrules:
  - {name: User, create: true, filter: {type: deny, users: [bob]}, parent: {name: fixed, value: a}}
  queues:
  - name: a
    parent: true
    adminacl: ' ops'
    maxapplications: 7
    properties: {application.sort.policy: fair, preemption.policy: disabled, x: "yes"}
    childtemplate: {resources: {max: {vcore: 500m, memory: 1Gi}}, properties: {preemption.delay: 5s}}
    queues:
    - {name: B, submitacl: 'joe,sue dev', maxapplications: 2, resources: {guaranteed: {vcore: 1}}}
    - {name: c, maxapplications: 1, parent: true}
  - {name: "2012"}
"""


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_show_writes_what_it_means(quadriga: Any, write: Any, options: tuple[str, ...]) -> None:
    done = quadriga("config", "show", *options, write("full.yaml", FULL))
    assert (done.code, done.err) == (0, "")
    for words in ("root", "500m", "1073741824", "joe,sue dev"):
        assert words in done.out
    (before,), (after,) = (load(text).partitions for text in (FULL, done.out))
    assert after == before
    assert quadriga("config", "show", *options, write("again.yaml", done.out)) == done


def test_strict_refuses_an_unknown_property_naming_the_nearest(quadriga: Any, write: Any) -> None:
    """Else it is a warning, which refuses nothing."""
    name = write("typo.yaml", ODD.replace("priority.offset: high", "application.sort.polcy: fair"))
    found = (
        "typo.yaml:4: warning: partitions[0].queues[0].properties.application.sort.polcy: "
        "unknown property, without effect; did you mean application.sort.policy?\n"
    )
    check = ("config", "check", name)
    assert quadriga(*check) == (0, f"{found}typo.yaml: valid (1 warning)\n", "")
    assert quadriga(*check, "--quiet") == (0, "", "")
    assert quadriga(*check, "--strict") == (1, f"{found}typo.yaml: invalid (1 warning)\n", "")
