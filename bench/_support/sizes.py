"""The choices of the command line: all sizes or only the small ones, a trace, how gangs start."""

from pathlib import Path

#: Measure every size; some take minutes.
FULL = False

#: A trace that ``simulate`` measures beside the embedded workload.
TRACE: Path | None = None

#: How gangs start where a measurement does not say it (``gang.admission``); ``None``: the default.
ADMISSION: str | None = None
