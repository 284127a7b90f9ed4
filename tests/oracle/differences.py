"""The deliberate differences between the Go core and ours: each once, by the rule that makes it.
See D124."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.oracle import circumstances, partings
from tests.oracle.explanations import explain, explain_gangs, explain_members
from tests.oracle.scenario import Scenario
from tests.oracle.settings import ADMISSION, HOLD, Setting
from tests.oracle.view import View


@dataclass(frozen=True, slots=True)
class Rule:
    """``applies`` looks at a scenario, ``explain`` at a step that differs, ``parts`` at how it differs."""

    id: str
    theirs: str
    ours: str
    how: Literal["played", "lines", "setting", "v1.8.0"]
    applies: Callable[[Scenario], bool] = circumstances.always
    explain: Callable[[View], None] | None = None
    setting: Setting | None = None
    parts: Callable[[Scenario, View], bool] | None = None


# fmt: off
RULES: tuple[Rule, ...] = (
    Rule("X1", "states are called Completing, Failing, Failed", "Waiting, Killing, Killed",
         "played"),
    Rule("X8", "a state update comes before the releases that belong to it",
         "after them with `si.messageOrder: design`", "played"),
    Rule("X12", "an allocation is identified by its allocationID; in v1.8.0 by its key, and asks are "
         "allocations without a node", "by its UUID, or as beside v1.8.0 (X45)", "played"),
    Rule("X46", "the numbers of UUIDs start again when an application id is reused",
         "they continue", "played"),
    Rule("X15", "v1.5.2: every application passes through Starting; v1.8.0: none", "only in stateaware "
         "queues", "played"),
    Rule("X13, X19", "v1.8.0 has no repeated asks, occupied resources and recovered allocations",
         "ours has them; they are not played beside v1.8.0", "played"),
    Rule("X17", "the time limit of an application is that of its placeholders, that of an ask is "
         "not used", "run limits where there are no placeholders", "played"),
    Rule("S4", "an unconfirmed release is never sent again", "it is sent again after a minute", "played"),
    Rule("S6", "a reservation that leads to nothing stays", "it is given up after an hour",
         "played"),
    Rule("Q7", "any number of nodes may be reserved, and for any ask", "a share of them, and one for equal asks",
         "played"),
    Rule("X9", "real asks are served while placeholders are pending", "they are held until all placeholders are placed",
         "setting", circumstances.has_gangs, setting=HOLD),
    Rule("X16", "placeholders are placed one by one",
         "only when the whole gang fits the quotas", "setting", circumstances.has_gangs_and_quotas,
         setting=ADMISSION),
    Rule("5.1", "v1.5.2: a type that only one level of the path limits counts as 0 on the others",
         "it is limited by that level", "v1.8.0", circumstances.limits_differ_by_level,
         parts=partings.limited_on_one_level),
    Rule("5.4", "v1.5.2: queues are ordered by all their shares, raw where nothing is guaranteed",
         "by their largest share, as in v1.8.0", "v1.8.0", circumstances.shares_may_be_raw,
         parts=partings.another_queue_first),
    Rule("5.6", "v1.5.2: a required node that does not exist, or is reserved already, stops the "
         "application's later asks", "the next ask is tried, and several may reserve it", "v1.8.0",
         circumstances.requires_node, parts=partings.not_held_up_by_a_required_node),
    Rule("X33", "v1.5.2: a draining queue accepts applications", "it does not", "v1.8.0",
         circumstances.changes_configuration, parts=partings.goes_to_a_draining_queue),
    Rule("X20", "UPDATE, draining or removal of an unknown node, and the return of one that is not "
         "draining, are silent", "answered with RejectedNode", "lines",
         explain=explain.unknown_node),
    Rule("I32", "a draining node accepts the ask that reserved it", "it does not", "lines",
         explain=explain.on_a_draining_node),
    Rule("I18", "a placeholder ask without task group is rejected", "it is an ordinary ask",
         "lines", explain=explain.placeholder_without_group),
    Rule("X30", "the release of an ask by the RM is not answered", "it is confirmed", "lines",
         explain=explain.answered_ask_release),
    Rule("X45", "v1.8.0: a release by key that withdraws a pending ask is not answered",
         "it is confirmed, with the key", "lines", explain=explain.answered_release_by_key),
    Rule("X31", "a removed application stays Completing forever, or is forgotten",
         "it ends in the same step", "lines", explain=explain.removed_application),
    Rule("G31", "a replacement is two steps: an application whose last placeholder goes is "
         "Completing and Running in between", "one step", "lines",
         explain=explain_gangs.replacement_in_one_step),
    Rule("X28", "timeout with a replacement in flight: released twice, bound in any case, and the "
         "state does not follow", "released once, bound only in a living application, which then "
         "runs", "lines", explain=explain_gangs.one_replacement_in_flight),
    Rule("X29", "a Soft timeout releases real asks as well", "only those of placeholders", "lines",
         explain=explain_gangs.soft_keeps_real_asks),
    Rule("S2", "after the RM withdrew a pending placeholder ask, a real ask of its group is never "
         "served", "it is served in the normal cycle", "lines", explain=explain_gangs.shrunk_group),
    Rule("X35", "without placeholderAsk an application with placeholders is no gang",
         "it is a gang as large as its placeholder asks", "lines",
         explain=explain_members.gang_without_announcement),
    Rule("X36", "a real ask for which no placeholder is left waits until all of its group are "
         "confirmed", "it is served at once", "lines",
         explain=explain_members.member_without_placeholder),
    Rule("X37", "a real ask that is larger than its placeholders has all those of its group "
         "released (v1.5.2: and is never served)", "it replaces one of them", "lines",
         explain=explain_members.one_for_one),
    Rule("X39", "a member replaces its placeholder on a draining node", "it goes to another node, or "
         "waits", "lines", explain=explain_members.another_node_than_one_that_drains),
    Rule("S5", "a gang runs when its placeholders are exactly what was announced", "when they are at least "
         "that",
         "lines", explain=explain_gangs.gang_runs_on_enough),
    Rule("G40", "leftover placeholders keep an application whose last ask is withdrawn from "
         "Completing", "they do not", "lines", explain=explain_gangs.waits_with_leftovers),
    Rule("I17", "an ask that is sent again under its key is served twice, or overwrites its "
         "allocation", "it replaces the pending one, or is a new ask", "lines",
         explain=explain.ask_sent_again),
    Rule("R6", "the release of all allocations while asks are pending does not refund the "
         "user's quota", "it is refunded", "lines", explain=explain.user_gets_back),
    Rule("V5", "a gang that ends before it runs keeps its slot under a parent's maxapplications",
         "it frees the slot", "lines", explain=explain.leaked_place),
    Rule("V7", "the release of all allocations leaves the application in Completing",
         "it completes", "lines", explain=explain.stuck_completing),
    Rule("5.8", "several reservations of one application are used in order of nodes (v1.5.2) or keys "
         "(v1.8.0)", "in order of asks", "lines", explain=explain.several_reservations),
    Rule("5.11", "an ask that cannot be placed is reported even if others were served",
         "only after a round that places nothing", "lines", explain=explain.hint_after_a_vain_round),
)
# fmt: on


def explainers() -> list[Callable[[View], None]]:
    """What looks at a step that differs, in order."""
    return [rule.explain for rule in RULES if rule.explain is not None]


def possible_settings(scenario: Scenario) -> list[tuple[Setting, ...]]:
    single = [r.setting for r in RULES if r.setting is not None and r.applies(scenario)]
    return [(each,) for each in single] + ([tuple(single)] if len(single) > 1 else [])


def partings_of(scenario: Scenario, view: View) -> tuple[str, ...]:
    """The rules of v1.8.0 that make just such a difference from v1.5.2."""
    return tuple(
        rule.id
        for rule in RULES
        if rule.parts is not None and rule.parts(scenario, view) and rule.applies(scenario)
    )
