"""Runs walks through an SCXML document with a standard interpreter, in a process of its own."""

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any


def python_statemachine(document: str, steps: list[Any]) -> Iterator[str | None]:
    from statemachine import StateChart
    from statemachine.io import load

    # it would wait for a delayed event before it returns, and the limits here are of minutes
    with open(document, encoding="utf-8") as file:
        text = re.sub(r"<(onentry|onexit)>.*?</\1>", "", file.read())
    machine = load(text, format="scxml")()

    def state() -> str | None:
        (found,) = (each for each in machine.configuration if not each.states)
        return None if found.final else str(found.id)

    yield state()
    for guards, event in steps:
        for name, value in guards.items():
            setattr(machine.model, name, value)
        # An event that is called send hides the method of the machine.
        StateChart.send(machine, event)
        yield state()


#: more references to None than the binding of Qt gives away
SPARE = [None] * 1_000_000


def qt(document: str, steps: list[Any]) -> Iterator[str | None]:
    from PySide6.QtCore import QCoreApplication
    from PySide6.QtScxml import QScxmlStateMachine

    loop = QCoreApplication.instance() or QCoreApplication([])
    machine = QScxmlStateMachine.fromFile(document)
    assert not machine.parseErrors(), [error.toString() for error in machine.parseErrors()]
    assert machine.init()
    machine.start()

    def state() -> str | None:
        for _ in range(5):
            loop.processEvents()
        return str(machine.activeStateNames()[0]) if machine.isRunning() else None

    yield state()
    for guards, event in steps:
        for name, value in guards.items():
            assert machine.dataModel().setScxmlProperty(name, value, "the test")
        machine.submitEvent(event)
        yield state()


if __name__ == "__main__":
    interpreter = {"python-statemachine": python_statemachine, "PySide6-Addons": qt}[sys.argv[1]]
    walks = json.load(sys.stdin)
    print(json.dumps([list(interpreter(sys.argv[2], walk)) for walk in walks]), flush=True)
    os._exit(0)
