"""What is known of a transition when it has been taken. Of tables that nobody observes."""

from __future__ import annotations

from typing import Any

from quadriga.fsm import ALLOCATION, APPLICATION, ASK
from quadriga.fsm import allocation as allocation_fsm
from quadriga.fsm import application as application_fsm
from quadriga.fsm import ask as ask_fsm
from quadriga.fsm.effects import RequestRelease


def test_all_that_go_a_way_share_one_step_which_names_it(born: Any, twin: Any) -> None:
    """A journal of a million records of one row has one edge."""
    table, ask = twin(ASK), born(ask_fsm.INITIAL)
    step = table.take(ask, ask_fsm.SUBMIT, {})
    assert step.edge == ("ask", ask_fsm.INITIAL, ask_fsm.SUBMIT, ask_fsm.PENDING)
    assert (step.entered, step.quiet, step.effects) == (True, True, ())
    assert ask.state == step.target == ask_fsm.PENDING
    assert table.take(born(ask_fsm.INITIAL), ask_fsm.SUBMIT, {}) is step


def test_a_step_that_stays_has_effects_or_enters_a_limit(born: Any, twin: Any) -> None:
    app = born(application_fsm.RUNNING)
    step = twin(APPLICATION).take(app, application_fsm.ASK, {})
    assert (step.entered, step.quiet) == (False, True)
    assert step.edge.source == step.edge.target == app.state == application_fsm.RUNNING
    step = twin(ALLOCATION).take(born(allocation_fsm.ALLOCATED), allocation_fsm.RELEASE, {})
    assert step.effects == (RequestRelease(),) and not step.quiet
    parked = twin(ASK).take(born(ask_fsm.PENDING), ask_fsm.PARK, {})
    assert parked.effects == () and not parked.quiet
