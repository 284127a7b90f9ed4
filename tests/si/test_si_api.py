"""The interface within a process, and the names both sides agree on."""

import inspect

import pytest

from quadriga import si
from quadriga.si import constants
from quadriga.si.api import has_own
from quadriga.si.constants import TagKey, build_tag_key, parse_tag_key


def methods(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


def test_i3_i4_m9_calls_and_callbacks_are_each_in_one_place() -> None:
    assert methods(si.SchedulerAPI) == set(
        "register_resource_manager update_allocation update_application update_node"
        " update_configuration".split()
    )
    register = inspect.signature(si.SchedulerAPI.register_resource_manager)
    assert list(register.parameters) == ["self", "request", "callback"]
    assert register.return_annotation is si.RegisterResourceManagerResponse
    assert methods(si.ResourceManagerCallback) == set(
        "update_allocation update_application update_node predicates preemption_predicates"
        " send_event update_container_scheduling_state".split()
    )
    assert methods(si.StateDumpPlugin) == {"get_state_dump"}


def test_x24_null_callback_ignores_news_and_answers_as_the_scheduler_assumes() -> None:
    rm: si.ResourceManagerCallback = si.NullCallback()
    assert isinstance(rm, si.ResourceManagerCallback)
    for name in methods(si.ResourceManagerCallback):
        ours, theirs = (getattr(of, name) for of in (si.NullCallback, si.ResourceManagerCallback))
        assert inspect.signature(ours) == inspect.signature(theirs)
    rm.update_allocation(si.AllocationResponse())
    rm.update_application(si.ApplicationResponse())
    rm.update_node(si.NodeResponse())
    rm.send_event([si.EventRecord()])
    rm.update_container_scheduling_state(si.UpdateContainerSchedulingStateRequest())
    assert rm.predicates(si.PredicatesArgs(allocationKey="a", nodeID="n", allocate=True)) is None
    args = si.PreemptionPredicatesArgs(preemptAllocationKeys=["x", "y", "z"], startIndex=1)
    answer = rm.preemption_predicates(args)
    assert (answer.success, answer.index) == (True, 1)


def test_i4_only_what_differs_from_the_null_callback_is_the_callbacks_own() -> None:
    class Careful(si.NullCallback):
        def predicates(self, args: si.PredicatesArgs) -> str | None:
            return "no"

        def get_state_dump(self) -> str:
            return "{}"

    assert isinstance(Careful(), si.StateDumpPlugin)
    assert not isinstance(si.NullCallback(), si.StateDumpPlugin)
    assert has_own(Careful(), "predicates")
    assert has_own(Careful(), "get_state_dump")
    assert not has_own(Careful(), "preemption_predicates")
    assert not has_own(si.NullCallback(), "get_state_dump")
    assert not has_own(object(), "send_event")
    late = si.NullCallback()
    vars(late)["predicates"] = lambda args: None
    assert has_own(late, "predicates")


def test_i34_constants(specified: set[str]) -> None:
    """By the names of the specification, which has no underscores."""
    values = {name: value for name, value in vars(constants).items() if name.isupper()}
    found = {f"const {name.replace('_', '')} = {value}" for name, value in values.items()}
    assert found == {fact for fact in specified if fact.startswith("const ")}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("kubernetes.io/meta/namespace", ("kubernetes.io/", "meta/", "namespace")),
        ("yunikorn.apache.org/creationTime", ("yunikorn.apache.org/", "", "creationTime")),
        ("a.io/label/app.a.io/name", ("a.io/", "label/", "app.a.io/name")),
    ],
)
def test_i35_tag_key_is_domain_group_key(text: str, parts: tuple[str, str, str]) -> None:
    tag = parse_tag_key(text)
    assert tag == TagKey(*parts)
    assert str(tag) == text
    assert build_tag_key(tag.domain, tag.key, group=tag.group) == text
    bare = (part.removesuffix("/") for part in (tag.domain, tag.group))
    assert build_tag_key(next(bare), tag.key, group=next(bare)) == text


@pytest.mark.parametrize("text", ["", "/", "namespace", "/meta/key", "domain/", "a//b", "a/b/"])
def test_i35_other_texts_are_no_tag_keys(text: str) -> None:
    with pytest.raises(ValueError, match="is not domain"):
        parse_tag_key(text)


@pytest.mark.parametrize(
    ("domain", "group", "key"),
    [
        ("", "", "key"),
        ("domain", "", ""),
        ("domain", "", "not/grouped"),
        ("do/main", "", "key"),
        ("do/main", "group", "key"),
        ("domain", "gr/oup", "key"),
        ("domain", "/", "key"),
    ],
)
def test_i35_parts_that_cannot_be_read_back_are_refused(domain: str, group: str, key: str) -> None:
    with pytest.raises(ValueError, match=r"not a tag key|is not domain"):
        build_tag_key(domain, key, group=group)
