"""Q16: what an application, an ask or a node says in a message has bounds, also in one process."""

from typing import Any

import pytest
from core_world import scripted

from quadriga.core.resources.message_bounds import MessageBounds
from quadriga.core.runtime.kernel import Options
from quadriga.si import (
    AddApplicationRequest,
    AllocationAsk,
    ApplicationRequest,
    NodeInfo,
    NodeRequest,
    UserGroupInformation,
)
from quadriga.sim.scripted.script import ONE_QUEUE, Script, resource

SMALL = MessageBounds(text=20, tags=3, tag_characters=100, groups=2, types=3, known_types=10)


def small() -> Script:
    return scripted(ONE_QUEUE, "app", options=Options(bounds=SMALL), vcore=4000)


def types(number: int, first: int = 0) -> Any:
    return resource({f"t{index}": 1 for index in range(first, first + number)})


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (AllocationAsk(allocationKey="k" * 21), "allocationKey of 21 characters, at most 20"),
        (AllocationAsk(taskGroupName="k" * 21), "taskGroupName of 21 characters, at most 20"),
        (AllocationAsk(tags={f"tag-{n}": "v" for n in range(4)}), "4 tags, at most 3 are allowed"),
        (AllocationAsk(tags={"a": "v" * 100}), "101 characters of tags, at most 100"),
        (AddApplicationRequest(queueName="q" * 21), "queueName of 21 characters"),
        (
            AddApplicationRequest(ugi=UserGroupInformation(user="u", groups=["group-name"] * 3)),
            "3 groups, at most 2 are allowed",
        ),
        (AddApplicationRequest(ugi=UserGroupInformation(user="u" * 21)), "user of 21 characters"),
        (
            AddApplicationRequest(ugi=UserGroupInformation(user="u", groups=["g" * 21])),
            "group of 21 characters",
        ),
        (NodeInfo(attributes={f"name-{n}": "v" for n in range(4)}), "4 attributes, at most 3"),
    ],
)
def test_q16_each_text_and_list_of_a_message_has_a_bound(message: Any, problem: str) -> None:
    assert SMALL.problem_of(message).startswith(problem)
    assert MessageBounds().problem_of(message) == ""


def test_q16_items_beyond_the_bounds_are_refused_alone_and_nothing_changes() -> None:
    script = small()
    scheduler = script.scheduler
    before = scheduler.partition().nodes.keys(), scheduler.partition().applications.keys()
    said = script.ask("app", "k" * 30, vcore=1)
    assert "allocationKey of 30 characters" in str(said)
    script.ask("app", "a", vcore=1)
    assert list(scheduler.application("app").asks) == ["a"]
    new = [AddApplicationRequest(applicationID="x", queueName="q" * 30)]
    nodes = [NodeInfo(nodeID="n" * 30, action=NodeInfo.CREATE)]
    outputs = scheduler.apply(ApplicationRequest(rmID="rm", new=new), scheduler.now)
    assert "queueName of 30 characters" in str(outputs)
    outputs = scheduler.apply(NodeRequest(rmID="rm", nodes=nodes), scheduler.now)
    assert "nodeID of 30 characters" in str(outputs)
    assert before == (scheduler.partition().nodes.keys(), scheduler.partition().applications.keys())


def test_q16_asks_cannot_use_up_the_resource_types_of_nodes() -> None:
    script = small()
    registry = script.scheduler.partition().registry
    known = dict(registry.index)
    assert "4 resource types, at most 3" in registry.problem_of(types(4).resources)
    registry.read(types(3))
    assert len(registry) == len(known) + 3 == 5
    said = registry.problem_of(types(1, 7).resources)
    assert said == "1 new resource types, the first is 't7': 5 of at most 5 are known already"
    assert registry.problem_of(types(3).resources) == ""
    assert registry.problem_of(types(1, 7).resources, of_nodes=True) == ""
    assert "resource type of 30 characters" in registry.problem_of(["x" * 30], of_nodes=True)


def test_q16_a_report_of_what_runs_counts_the_types_that_are_known() -> None:
    script = small()
    registry = script.scheduler.partition().registry
    registry.read(types(3))
    vector = registry.read_report(resource({"vcore": 5, "t1": 7, "unknown": 9}))
    assert registry.mapping(vector) == {"vcore": 5, "t1": 7}
    assert "unknown" not in registry.index


def test_q16_resource_types_that_others_name_cost_an_application_nothing() -> None:
    script = scripted(ONE_QUEUE, "foe", "app", vcore=4000)
    partition = script.scheduler.partition()
    lengthened, lengthen = [], partition.registry.on_new_types
    partition.registry.on_new_types = lambda: (lengthened.append(1), lengthen())[1]
    script.ask("foe", "wide", **{f"rare-{index}": 1 for index in range(60)})
    script.ask("app", "a", vcore=1000)
    app = script.scheduler.application("app")
    assert len(lengthened) == 1  # and not once for each type
    assert len(script.scheduler.application("foe").pending) > 60
    assert max(len(each) for each in (app.allocated, app.most, app.asks["a"].vector)) <= 3
