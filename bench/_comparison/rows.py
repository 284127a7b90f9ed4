"""The rows of the table: the name of the function, and the question that it answers."""

from __future__ import annotations

from typing import Final

#: questions whose answers are facts: the same on every machine
FACTS: Final = {
    "guard": "A guard decides by data that comes with the trigger",
    "refused_guard": "All guards refuse",
    "illegal": "A trigger that is illegal in the state",
    "misspelled": "A misspelled trigger",
    "effects": "What firing returns to its caller",
    "failure": "A callback raises: the state afterwards",
    "possible": "The triggers that are possible now",
    "stays": "A trigger that is legal and changes nothing",
    "star": "One row for all states",
    "stored": "An object is loaded in a stored state",
    "unknown_stored": "The stored state does not exist any more",
    "pickled": "An object is pickled and fired at again",
    "timeout": "A state has a time limit",
    "async_guard": "A guard is a coroutine",
    "nested": "A state contains states",
    "history": "The state inside is remembered",
    "parallel": "Two regions at once",
    "enums": "States are members of an Enum",
    "typed": "mypy finds a misspelled trigger",
    "bad_target": "Definition: a misspelled target",
    "unreachable": "Definition: a state that cannot be reached",
    "dead_end": "Definition: a state without an exit that is not declared final",
    "shadowed": "Definition: a row that is never tried",
    "extended": "A definition is extended without a change of the first one",
    "diagrams": "Diagrams as text, without graphviz",
    "coverage": "Coverage of transitions by tests",
    "shortest": "The shortest way to a state",
    "observed": "A program is told of every transition",
}
#: questions whose answers are figures of the machine that wrote the page
FIGURES: Final = {
    "memory": "Bytes of one object, with what the library adds",
    "speed_plain": "Time of a plain trigger",
    "speed_guard": "Time of a trigger with a guard",
    "creation": "Time to make an object",
    "importing": "Time to import the library",
}
