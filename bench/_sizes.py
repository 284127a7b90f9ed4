"""The choices of the command line: all sizes or only the small ones, and a trace."""

from pathlib import Path

#: Measure every size; some take minutes.
FULL = False

#: A trace that ``simulate`` measures beside the embedded workload.
TRACE: Path | None = None
