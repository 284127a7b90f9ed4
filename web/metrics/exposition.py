"""Metrics as text: Prometheus format 0.0.4, and OpenMetrics 1.0 on request.

``prometheus_client`` is not used: it cannot write a counter whose name does not end in ``_total``,
such as YuniKorn's ``..._queue_container``, and it creates an object for each sample. The tests
check the text with its parsers. See D91.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Final

from quadriga.web.metrics.families import Distribution, Family, Labels

PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_TOTAL: Final = "_total"


def accepts_openmetrics(accept: str) -> bool:
    """Whether the Accept header prefers OpenMetrics to plain text."""
    best = {"openmetrics": 0.0, "plain": 0.0}
    for each in accept.split(","):
        kind, *parameters = (part.strip() for part in each.split(";"))
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 0.0
        if kind.lower() == "application/openmetrics-text":
            best["openmetrics"] = max(best["openmetrics"], quality)
        elif kind.lower() in ("text/plain", "text/*"):
            best["plain"] = max(best["plain"], quality)
    return best["openmetrics"] > 0 and best["openmetrics"] >= best["plain"]


def metric_name(text: str) -> str:
    """The text as a metric name or a part of one: invalid characters become underscores."""
    return re.sub(r"[^a-zA-Z0-9_:]", "_", text)


def plain(families: Iterable[Family]) -> bytes:
    """The Prometheus text format."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {_help(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        _samples(lines, family, _short)
    lines.append("")
    return "\n".join(lines).encode()


def openmetrics(families: Iterable[Family], *, last: bool = True) -> bytes:
    """OpenMetrics. There the name of a counter ends in ``_total``, and its family has the name
    without it. Other counters, and those whose family name is taken, have the type unknown.
    ``last`` adds the end mark."""
    lines: list[str] = []
    taken: set[str] = set()
    for family in families:
        name, kind = family.name, str(family.kind)
        if kind == "counter":
            if name.endswith(_TOTAL) and name.removesuffix(_TOTAL) not in taken:
                name = name.removesuffix(_TOTAL)
            else:
                kind = "unknown"
        taken.add(name)
        lines.append(f"# TYPE {name} {kind}")
        lines.append(f"# HELP {name} {_escape(family.help)}")
        _samples(lines, family, repr)
    if last:
        lines.append("# EOF")
    lines.append("")
    return "\n".join(lines).encode()


def _samples(lines: list[str], family: Family, bound: Callable[[float], str]) -> None:
    name = family.name
    for labels, value in family.samples:
        if not isinstance(value, Distribution):
            lines.append(f"{name}{_labels(labels)} {_number(value)}")
            continue
        cumulative = 0
        for upper, count in zip((*value.bounds, math.inf), value.counts, strict=True):
            cumulative += count
            le = "+Inf" if upper == math.inf else bound(upper)
            lines.append(f"{name}_bucket{_labels((*labels, ('le', le)))} {cumulative}")
        lines.append(f"{name}_sum{_labels(labels)} {_number(value.total)}")
        lines.append(f"{name}_count{_labels(labels)} {cumulative}")


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join([f'{name}="{_escape(value)}"' for name, value in labels]) + "}"


def _escape(text: str) -> str:
    """Escape a label value: backslash, quote and line end."""
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return text


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _short(number: float) -> str:
    """A number as Go formats it, so that labels equal YuniKorn's."""
    return str(int(number)) if number == int(number) and number < 1e15 else repr(number)


def _number(value: int | float) -> str:
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value)
