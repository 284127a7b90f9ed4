"""What the command line chose: all sizes or the small ones, and a trace."""

from pathlib import Path

#: measure every size; some take minutes
FULL = False

#: a trace that ``simulate`` measures beside the embedded workload
TRACE: Path | None = None
