"""``quadriga-fsm stubs`` writes the members that the library binds, and at run time nothing that is in their way."""

import ast
import re
from enum import Enum
from keyword import iskeyword
from pathlib import Path
from typing import Any

import pytest
from transitions import Machine

from quadriga.diagrams.command import main
from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.stubs import stubs
from tests.typing import machines

MACHINES = [name for name, value in vars(machines).items() if isinstance(value, Machine)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "fast-machine.md"


def documented() -> tuple[str, str]:
    """The two programs of the documentation."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Types\n")[1].split("\n## ")[0]
    first, second = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return first, second


def members(machine: Machine) -> set[str]:
    (model,) = (
        node
        for node in ast.parse(stubs(machine, "a:b")).body
        if isinstance(node, ast.ClassDef) and node.name == "Model"
    )
    lines = model.body[0].body  # type: ignore[attr-defined]
    return {line.target.id if isinstance(line, ast.AnnAssign) else line.name for line in lines}


@pytest.mark.parametrize("name", sorted({*MACHINES} - {"empty"}))
def test_the_members_are_those_that_the_library_binds(name: str) -> None:
    class Bare: ...

    machine: Any = getattr(machines, name)
    machine.add_model(bare := Bare())
    machine.remove_model(bare)
    bound = {n for n in dir(bare) if n not in dir(Bare) and n.isidentifier() and not iskeyword(n)}
    # an asynchronous machine binds `to`, which awaits nothing
    assert members(machine) - {"stamp"} == bound - ({"to"} if name == "live_nested" else set())


@pytest.mark.skipif(not hasattr(machines.door, "model_override"), reason="since transitions 0.9.2")
def test_a_machine_that_overrides_binds_what_the_class_declares() -> None:
    class Declared:
        def to_a(self) -> bool:
            return False

    one = Machine(Declared(), states=["a"], initial="a", model_override=True)
    assert members(one) == {"state", "to_a"}


@pytest.mark.parametrize("name", MACHINES)
def test_equal_machines_give_equal_text_and_a_class_that_hides_no_method(name: str) -> None:
    text = stubs(getattr(machines, name), "machines:it")
    assert text == stubs(getattr(machines, name), "machines:it")
    space: dict[str, Any] = {"__name__": "stub"}
    exec(compile(text, "stub", "exec", dont_inherit=True), space)
    assert [name for name in dir(space["Model"]) if not name.startswith("__")] == []


def test_callbacks_that_disagree_leave_a_trigger_free() -> None:
    way: Any = {"trigger": "go", "source": "a", "dest": "a", "after": lambda x: None}
    one = Machine(
        None, states=["a"], initial="a", transitions=[way, {**way, "before": lambda y, /: None}]
    )
    assert "def go(self, *args: Any, **kwargs: Any) -> bool" in stubs(one, "a:b")
    two = Machine(
        None, states=["a"], initial="a", transitions=[way, {**way, "before": lambda x: None}]
    )
    assert "def go(self, x: Any) -> bool" in stubs(two, "a:b")


def test_states_that_no_module_can_import_are_refused_with_their_name() -> None:
    class Local(Enum):
        A = 1

    with pytest.raises(DiagramError, match="a:b has states of .*Local, which no module can import"):
        stubs(Machine(None, states=Local, initial=Local.A), "a:b")


def test_what_is_no_machine_is_refused_with_those_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stubs", "tests.typing.machines:TREE"]) == 2
    error = capsys.readouterr().err
    assert (
        "tests.typing.machines:TREE is a list, not a Machine: give tests.typing.machines:order or"
        in error
    )
