"""Where Spark and the Dask operator are installed, which .ci/cluster does."""

import os
import shutil
from pathlib import Path

from control_plane import Missing

FOLDER = "real-programs-1"


class RealPrograms:
    """Raises ``Missing`` with what to do."""

    def __init__(self) -> None:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        cluster = os.environ.get("QUADRIGA_CLUSTER")
        folder = (Path(cluster).parent if cluster else cache / "quadriga") / FOLDER
        self.python = folder / "bin" / "python"
        found = sorted(folder.glob("lib/python3.*/site-packages/pyspark"))
        if not found:
            raise Missing(f"no Spark and no Dask in {folder}: .ci/cluster installs them")
        if shutil.which("java") is None:
            raise Missing("no java (Debian: default-jre-headless), which Spark needs")
        self.spark = found[0]
        self.packages = self.spark.parent
