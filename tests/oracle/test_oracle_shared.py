"""The shared scenarios: our core does what the Go core was seen to do."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from tests.oracle.__main__ import main
from tests.oracle.comparison import Verdict, judge
from tests.oracle.report import lines_of
from tests.oracle.scenario import scenarios


def test_all_shared_scenarios_agree(verdicts: list[Verdict]) -> None:
    """... and hardly any step is left out."""
    wrong = [line for verdict in verdicts if not verdict.agrees for line in lines_of(verdict)]
    assert not wrong, "\n".join(wrong)
    assert len(verdicts) >= 40
    steps = sum(len(verdict.scenario.steps) for verdict in verdicts)
    assert sum(verdict.compared for verdict in verdicts) > 0.99 * steps


def test_a_folder_without_an_index(shared: Path, tmp_path: Path) -> None:
    """Plain or gzipped, with or without what INDEX.json says."""
    source = shared / "data" / "oracle"
    shutil.copy(source / "gang-009.json", tmp_path)
    text = gzip.decompress((source / "gang-009.out.gz").read_bytes())
    (tmp_path / "gang-009.out").write_bytes(text)
    (verdict,) = [judge(scenario) for scenario in scenarios([tmp_path])]
    assert verdict.agrees
    assert verdict.compared == len(verdict.scenario.steps)


def test_the_exit_status_and_the_report(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = shared / "data" / "oracle"
    assert main([str(source / "s1_plain.json"), "--verbose"]) == 0
    assert "s1_plain: agrees" in capsys.readouterr().out
    for name in ("s1_plain.json", "s1_plain.out"):
        shutil.copy(source / name, tmp_path)
    file = tmp_path / "s1_plain.out"
    file.write_text(file.read_text().replace('"nodeID":"node-1"', '"nodeID":"node-9"'))
    assert main([str(tmp_path)]) == 1
    assert "DIFFERS at step 1" in capsys.readouterr().out
    assert main([str(tmp_path), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "differs"
    assert data["difference"]["theirs"] == ["accepted node node-9"]
