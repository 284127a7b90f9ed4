"""Metrics as text: the Prometheus format 0.0.4, and OpenMetrics 1.0 for those who ask for it.

Written here and not by ``prometheus_client``: that one cannot write a counter whose name does not end
in ``_total``, which YuniKorn's ``..._queue_container`` does not, and makes an object of each sample.
Its parsers check the text in the tests.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Final

from quadriga.web.metrics.families import Distribution, Family, Labels

__all__ = ["OPENMETRICS", "PLAIN", "accepts_openmetrics", "metric_name", "openmetrics", "plain"]

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
    """The text as (part of) a metric's name: what may not stand there is an underscore."""
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
    """OpenMetrics, where a counter's name ends in ``_total``, and is its family's without that: others,
    and those whose family has the name of one before, are of unknown type. ``last``: nothing more
    follows."""
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
    """Within quotes: backslash, quote and line end."""
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return text


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _short(number: float) -> str:
    """As Go writes it, so that series have the labels that they have with YuniKorn."""
    return str(int(number)) if number == int(number) and number < 1e15 else repr(number)


def _number(value: int | float) -> str:
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value)
