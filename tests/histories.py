"""Arbitrary histories, compared with golden checksums: a file has one for each step of each seed.

After a change of behaviour, QUADRIGA_GOLDEN=write writes the checksums anew. QUADRIGA_HISTORIES names a folder for
the texts behind them, so that ``diff`` shows what has changed.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32


def compare(golden: Path, seed: int, texts: Iterable[str]) -> None:
    found = []
    for step, text in enumerate(texts):
        found.append(f"{crc32(text.encode()):08x}")
        if folder := os.environ.get("QUADRIGA_HISTORIES"):
            (Path(folder) / f"{golden.parts[-3]}-{seed}-{step}").write_text(text, encoding="utf-8")
    known = json.loads(golden.read_text())
    if os.environ.get("QUADRIGA_GOLDEN") == "write":
        known[str(seed)] = " ".join(found)
        golden.write_text(json.dumps(known, indent=0) + "\n")
    assert found == known[str(seed)].split(), "at the first step that differs"
