"""The pages' scripts know states from the files of the lifecycles, and from nowhere else."""

import re
import sys
from importlib.resources import files

import pytest

from quadriga.fsm import LIFECYCLES
from quadriga.fsm.lifecycles import application as application_fsm
from quadriga.fsm.table import Tone
from quadriga.web.pages.states import merged, script

STATIC = files("quadriga.web.pages").joinpath("static")

#: headings and words of the pages that a state has as its name, too
HEADINGS = {"Pending", "Preempted", "Running", "Rejected", "Completed"}


def test_the_committed_module_is_what_the_lifecycles_say() -> None:
    # run: python -m quadriga.web.pages.states > web/pages/static/states.js
    assert STATIC.joinpath("states.js").read_text("utf-8") == script()


def test_every_state_has_one_tone() -> None:
    tones = {
        name: sys.modules[f"quadriga.fsm.lifecycles.{name}"].TONES for name in LIFECYCLES
    }  # checked when each file was imported
    for name, lifecycle in LIFECYCLES.items():
        assert set(tones[name]) == set(lifecycle.states)
    assert merged(tones.values())["Waiting"] == "done"
    other: dict[str, Tone] = {"Waiting": "bad"}
    with pytest.raises(ValueError, match=r"^Waiting is shown as done and as bad$"):
        merged([application_fsm.TONES, other])


def test_no_script_names_a_state() -> None:
    named = {state for lifecycle in LIFECYCLES.values() for state in lifecycle.states}
    for each in STATIC.iterdir():
        if each.name.endswith(".js") and each.name != "states.js":
            text = each.read_text("utf-8")
            quoted = set(re.findall(r"""(?<!\[)["'`](\w+)["'`]""", text))
            asked = set(re.findall(r"\.([A-Z]\w+)\b", text))
            assert (quoted | asked) & named - HEADINGS == set(), each.name
