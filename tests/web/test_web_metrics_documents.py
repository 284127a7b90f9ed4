"""docs/metrics.md, the Grafana dashboard and the alert rules name what a live page really has."""

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from metrics_scene import families, metrics_of, played, samples, scrape, served, service_of

DOCS = Path(__file__).resolve().parents[2] / "docs"

if not DOCS.is_dir():
    pytest.skip("docs/ is part of a checkout only", allow_module_level=True)

PAGE = (DOCS / "metrics.md").read_text(encoding="utf-8")
OPERATIONS = (DOCS / "operations.md").read_text(encoding="utf-8")
#: each state with YuniKorn's word for it; metrics.md refers to them
STATES = (DOCS / "glossary.md").read_text(encoding="utf-8").partition("\n## States\n")[2].lower()
DASHBOARD: dict[str, Any] = json.loads((DOCS / "grafana" / "quadriga.json").read_text("utf-8"))
ALERTS: dict[str, Any] = yaml.safe_load((DOCS / "prometheus" / "alerts.yaml").read_text("utf-8"))

#: what Prometheus itself adds to every series
TARGET = {"job", "instance"}


@pytest.fixture(scope="module")
def live() -> str:
    service = service_of()
    played(service)
    return scrape(metrics_of(service, extra=[served]), service)


def rows() -> Iterator[tuple[str, str, frozenset[str]]]:
    """Name, type and labels of every row of its tables, and of what the command adds."""
    for line in (*PAGE.splitlines(), *OPERATIONS.splitlines()):
        if re.match(r"\| `(quadriga|yunikorn|process|python)_", line):
            name, kind, labels, meaning, *_ = (c.strip() for c in line.split("|")[1:-1])
            assert meaning, name
            yield name.strip("`"), kind, frozenset(re.findall(r"`(\w+)`", labels))


def spelled(name: str) -> str:
    """As a row spells it: queues and resources have names of their own."""
    name = re.sub(
        r"^yunikorn_root(_\w+?)?_(queue_(app|container|resource))$", r"yunikorn_<queue>_\2", name
    )
    return re.sub(r"_(vcore|memory)_node_usage", "_<resource>_node_usage", name)


def test_every_metric_is_in_the_page_and_every_row_is_a_metric(live: str) -> None:
    """With its type and labels."""
    listed = [*rows()]
    wanted = {name: (kind, labels) for name, kind, labels in listed}
    assert len(wanted) == len(listed)
    found: dict[str, Any] = {}
    for name, (kind, help, labels) in families(live).items():
        assert found.setdefault(spelled(name), (kind, labels)) == (kind, labels), name
        assert help.endswith("."), name
    assert found == wanted


def test_words_that_stand_for_label_values_are_in_the_page(live: str) -> None:
    free = """
    queue resource rm partition version from to trigger lifecycle range generation le implementation major
    minor patchlevel
    """.split()
    said = {
        value
        for (name, labels), _ in samples(live).items()
        if not name.startswith(("quadriga_state", "quadriga_watchdog", "quadriga_grpc_refused"))
        for label, value in labels
        if label not in free
    }
    assert "gathering" in said
    text = PAGE + OPERATIONS + STATES
    assert [value for value in sorted(said) if not re.search(rf"\b{value}\b", text)] == []


def test_no_label_names_a_user_an_application_an_ask_or_a_node(live: str) -> None:
    text = "\n".join(line for line in live.splitlines() if not line.startswith("#"))
    for name in ("somebody", "greedy", "below", "pods", "n0", "gang-"):
        assert f'"{name}' not in text, name


def test_the_sample_runs() -> None:
    samples = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert samples
    for code in samples:
        exec(compile(code, "metrics.md", "exec"), {"__name__": "sample"})


_METRIC = re.compile(r"\b((?:quadriga|yunikorn|process|python)_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'\s*(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"\s*(?:,|$)')
_GROUPING = re.compile(r"\b(?:by|without|ignoring|on)\s*\(([^)]*)\)")


def check(expression: str, live: dict[tuple[str, frozenset[tuple[str, str]]], float]) -> None:
    """Every metric is there, with a sample that has these labels, and brackets are closed."""
    assert expression.count("(") == expression.count(")"), expression
    names: dict[str, set[str]] = {}
    for (name, labels), _ in live.items():
        names.setdefault(name, set()).update(label for label, _ in labels)
    metrics = _METRIC.findall(expression)
    assert metrics, expression
    known: set[str] = set(TARGET)
    for name, selector in metrics:
        assert name in names, f"{name} in {expression}"
        known |= names[name]
        matchers = _MATCHER.findall(selector)
        assert "".join(f'{label}{sign}"{value}",' for label, sign, value in matchers) == (
            re.sub(r"\s", "", selector) + "," if selector else ""
        ), selector
        wanted = {
            (label, value)
            for label, sign, value in matchers
            if sign == "=" and label not in TARGET and "$" not in value
        }
        for label, _, _ in matchers:
            assert label in names[name] | TARGET, f"{label} of {name} in {expression}"
        assert any(wanted <= labels for n, labels in live if n == name), f"{wanted} of {name}"
    for group in _GROUPING.findall(expression):
        for label in filter(None, map(str.strip, group.split(","))):
            assert label in known, f"{label} in {expression}"
    differing = {selector for name, selector in metrics}
    if len(metrics) == 2 and len(differing) == 2 and "sum" not in expression:
        assert "ignoring" in expression, f"nothing would match: {expression}"
    assert ("histogram_quantile" in expression) == any(n.endswith("_bucket") for n, _ in metrics)
    if "histogram_quantile" in expression:
        assert re.search(r"by \([^)]*\ble\b", expression), expression


PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
SHOWING = [panel for panel in PANELS if panel["type"] != "row"]


@pytest.mark.parametrize("panel", SHOWING, ids=[panel["title"] for panel in SHOWING])
def test_a_panel_shows_what_there_is(panel: dict[str, Any], live: str) -> None:
    found = samples(live)
    assert panel["targets"]
    assert "ABC".startswith("".join(target["refId"] for target in panel["targets"]))
    for target in panel["targets"]:
        expression = target["expr"].replace("$__rate_interval", "5m")
        check(expression, found)
        assert target["datasource"]["uid"] == "${datasource}"
        shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        for name, _ in _METRIC.findall(expression):
            labels = {label for (n, ls), _ in found.items() if n == name for label, _ in ls}
            assert shown <= labels, f"{shown} of {name}"
        grouping = re.search(r"sum by \(([^)]*)\)", expression)
        if grouping:
            assert shown <= set(re.split(r",\s*", grouping[1])), expression


def test_the_dashboard_is_one_that_grafana_can_import() -> None:
    """Panels have numbers of their own and do not overlap, and there are rows for all subjects."""
    assert DASHBOARD["uid"] and DASHBOARD["title"]
    assert DASHBOARD["schemaVersion"] >= 36
    assert "id" not in DASHBOARD  # Grafana's own number
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) - {"__rate_interval", "__all"}
    assert used == set(variables)
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        x, y, width, height = (panel["gridPos"][each] for each in "xywh")
        assert 0 < width <= 24 - x, panel["title"]
        cells = {*product(range(x, x + width), range(y, y + height))}
        assert not cells & taken, panel["title"]
        taken |= cells
    titles = [panel["title"] for panel in PANELS if panel["type"] == "row"]
    assert ", ".join(titles) == (
        "Cluster, Queues, Waiting, Applications, Gangs, Preemption and reservations, Latencies,"
        " Connections, Watchdog and service"
    )


def test_the_variables_ask_for_labels_that_there_are(live: str) -> None:
    for each in DASHBOARD["templating"]["list"]:
        if each["type"] == "query":
            match = re.fullmatch(r"label_values\((.*), (\w+)\)", each["query"]["query"])
            assert match, each["name"]
            check(match[1], samples(live))
            assert match[2] in TARGET | families(live)[_METRIC.findall(match[1])[0][0]][2]


RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_an_alert_is_about_what_there_is(rule: dict[str, Any], live: str) -> None:
    assert [each["alert"] for each in RULES].count(rule["alert"]) == 1
    check(rule["expr"], samples(live))
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"Quadriga[A-Z]\w+", rule["alert"])
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert rule["annotations"]["summary"]
    if "for" in rule:
        assert re.fullmatch(r"\d+[smh]", rule["for"])
    labels = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
    found = families(live)
    for name, _ in _METRIC.findall(rule["expr"]):
        family = next(n for n in (name, name.removesuffix("_bucket")) if n in found)
        assert labels <= found[family][2] | TARGET
