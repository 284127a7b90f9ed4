"""Metrics of the process and the interpreter, under the names that Prometheus' own clients use.
YuniKorn's ``yunikorn_runtime_*`` metrics are specific to Go. Values that the operating system does
not provide are left out."""

from __future__ import annotations

import gc
import os
import platform
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from quadriga.web.metrics.families import Family, one

_PROC: Final = Path("/proc/self")


def process_families() -> Iterator[Family]:
    """The current values."""
    yield one("process_cpu_seconds_total", "counter", "Processor time in s.", time.process_time())
    yield from _memory()
    yield from _files()
    yield one("python_threads", "gauge", "Threads of the interpreter.", threading.active_count())
    version = platform.python_version_tuple()
    yield one(
        "python_info",
        "gauge",
        "The interpreter.",
        1,
        implementation=platform.python_implementation(),
        major=version[0],
        minor=version[1],
        patchlevel=version[2],
        version=platform.python_version(),
    )
    yield from _garbage()


def _memory() -> Iterator[Family]:
    try:
        # the command before this may contain spaces and brackets
        fields = (_PROC / "stat").read_text().rpartition(")")[2].split()
        page, tick = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
        uptime = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, AttributeError):
        return
    yield one("process_virtual_memory_bytes", "gauge", "Address space in bytes.", int(fields[20]))
    yield one("process_resident_memory_bytes", "gauge", "Memory in bytes.", int(fields[21]) * page)
    started = time.time() - uptime + int(fields[19]) / tick
    yield one(
        "process_start_time_seconds", "gauge", "When it started (unix time).", round(started, 2)
    )


def _files() -> Iterator[Family]:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        opened = len(os.listdir(_PROC / "fd"))
    except (ImportError, OSError):
        return
    yield one("process_open_fds", "gauge", "Open file descriptors.", opened)
    yield one("process_max_fds", "gauge", "How many there may be.", limit)


def _garbage() -> Iterator[Family]:
    if sys.implementation.name != "cpython":
        return
    families = (
        ("collections", "collections", "Rounds of the garbage collector."),
        ("objects_collected", "collected", "Objects it has freed."),
        ("objects_uncollectable", "uncollectable", "Objects it could not free."),
    )
    statistics = gc.get_stats()
    for name, key, help in families:
        family = Family(f"python_gc_{name}_total", "counter", help)
        for generation, counts in enumerate(statistics):
            family.add(counts[key], generation=str(generation))
        yield family
