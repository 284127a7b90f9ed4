"""Applications: who makes one, how they end and start anew, quotas, conditions (K26 to K60, K153 to K156, T17)."""

from typing import Any

import pytest
from k8s_queues import HARD, SOFT, STRICT, WHOLE, queues
from k8s_world import World, cluster, gang

from quadriga import si
from quadriga.k8s.objects import NamedReference, Pod
from quadriga.k8s.shim import actions
from quadriga.k8s.shim.actions import Action
from quadriga.k8s.shim.inputs import Changed, CoreAnswered


def added(world: World) -> list[si.AddApplicationRequest]:
    return [new for e in world.sent if isinstance(e, si.ApplicationRequest) for new in e.new]


def test_k58_the_first_pod_says_what_the_application_is(world: World) -> None:
    world.add_pod("a", "app", queue="root.default", annotations=user("ann"))
    late = world.add_pod("b", "app", queue="root.small", annotations=user("bob"))
    world.run(2)
    (app,) = added(world)
    assert (app.queueName, app.ugi.user) == ("root.default", "ann")
    notes = [each.note for each in world.records if each.uid == late.uid]
    assert any("root.small" in note and "bob" in note for note in notes)
    assert world.phases() == {"Running": 2}


def user(name: str) -> dict[str, str]:
    return {"yunikorn.apache.org/user.info": f'{{"user": "{name}", "groups": ["g"]}}'}


def replicated(world: World, seconds: int, **more: Any) -> list[Pod]:
    """A ReplicaSet of one: when the pod fails, the next one is there at once. Gives all of them."""
    made = [world.add_pod("r-0", "app", **more)]
    for _ in range(seconds * 10):
        world.run(0.1)
        if world.pods[made[-1].uid].status.phase == "Failed":
            made.append(world.add_pod(f"r-{len(made)}", "app", **more))
    return made


def test_k60_a_rejected_application_whose_pods_come_again_at_once_is_tried_ever_later() -> None:
    world = cluster(queues=STRICT)
    made = replicated(world, 300, queue="root.nowhere")
    assert len(made) == 10, "one each after 0, 1, 3, 7, 15, ... seconds"
    assert len(added(world)) == 9
    reason, message = world.conditions[made[0].uid]
    assert (reason, "root.nowhere" in message) == ("ApplicationRejected", True)
    last = made[-1]
    assert world.app_state("app") == "Held"
    reason, message = world.conditions[last.uid]
    assert reason == "SchedulingSkipped"
    assert "root.nowhere" in message and "tried again in 256 s" in message
    world.delete_pod(last.uid)
    world.run(1)
    assert world.app_state("app") == ""
    world.check()


def test_k155_the_members_of_a_gang_say_why_it_waits() -> None:
    world = cluster("2")
    for n in range(2):
        world.add_pod(f"m-{n}", "app", group="w", groups=[gang("w", 3)])
    world.run(5)
    late = world.add_pod("m-2", "app", group="w", groups=[gang("w", 3)])
    world.run(5)
    assert world.app_state("app") == "Reserving"
    placeholders = {each.uid for each in world.placeholders}
    assert len(placeholders) == 3
    for pod in world.pods.values():
        if pod.uid in placeholders:
            continue
        reason, message = world.conditions[pod.uid]
        assert reason == "SchedulingSkipped", "a cluster grows for the placeholders alone"
        assert message.startswith("The gang waits for its placeholders: ")
        application, key = world.shim.ask_of(pod.uid) or ("", "")
        assert (application, key in placeholders) == ("app", True)
    assert world.shim.ask_of("nobody") is None
    world.add_node("n2", cpu="2")
    world.run(5)
    assert world.pods[late.uid].status.phase == "Running"
    assert world.shim.ask_of(late.uid) == ("app", late.uid)
    assert world.conditions == {}


def test_k60_a_pod_that_comes_while_the_application_completes_is_not_lost() -> None:
    for moment in range(25, 40):
        world = cluster()
        world.add_pod("a", "app", duration=1)
        world.run(moment)
        pod = world.add_pod("b", "app", duration=5)
        # the pod is asked for before the core's completion is heard
        for action in world.shim.handle(world.inputs.popleft(), world.now):
            world.carry_out(action)
        world.now += 1_000_000_000
        world.core.step(world.now)
        world.run(60)
        assert world.pods[pod.uid].status.phase == "Succeeded", moment
        world.check()


def placed_by_another(world: World, uid: str) -> None:
    world.place(uid, "n1")
    world.settle()


@pytest.mark.parametrize("state", ["Completed", "Failed", "Killed", "Failing"])
def test_k96_a_pod_that_another_scheduler_binds_counts_for_any_application(state: str) -> None:
    world = cluster()
    first = world.add_pod("a", "app")
    world.run(1)
    ended = si.UpdatedApplication(applicationID="app", state=state)
    world.inputs.append(CoreAnswered(si.ApplicationResponse(updated=[ended])))
    world.settle()
    waiting = world.add_pod("b", "app")
    world.settle()
    placed_by_another(world, waiting.uid)
    unknown = world.add_pod("c", "app", node="n1")
    world.settle()
    both = {waiting.uid: "n1", unknown.uid: "n1"}
    assert world.core_state() == {first.uid: "n1", **both}
    for late in both:
        world.end_pod(late)
    world.settle()
    assert world.core_state() == {first.uid: "n1"}


def test_k96_a_pod_that_counts_as_foreign_is_its_applications_own_when_that_starts_anew() -> None:
    world = cluster()
    world.refuse_applications = True
    first = world.add_pod("a", "app", node="n1")
    world.run(1)
    assert world.app_state("app") == "Rejected"
    late = world.add_pod("b", "app")
    world.settle()
    placed_by_another(world, late.uid)
    assert world.core_state() == {first.uid: "n1", late.uid: "n1"}
    world.refuse_applications = False
    world.end_pod(first.uid)
    world.run(1)
    assert world.app_state("app") == "Running"
    assert world.core_app("app") == "Running"
    world.check()
    assert not [each for each in world.shim.dump()["applications"][0]["tasks"] if each["foreign"]]
    world.end_pod(late.uid)
    world.run(60)
    assert (world.app_state("app"), world.core_state()) == ("", {})


def test_k96_a_pod_without_an_application_counts_when_its_node_comes(world: World) -> None:
    world.refuse_applications = True
    world.add_pod("a", "app", node="n1")
    late = world.add_pod("b", "app", node="n2")
    world.run(1)
    assert late.uid not in world.core_state()
    world.add_node("n2")
    world.run(1)
    world.check()
    world.restart()
    world.run(1)
    world.check()


@pytest.mark.parametrize("answered", [True, False], ids=["answered", "unanswered"])
def test_k178_an_application_whose_asks_are_all_rejected_goes_with_its_pods(answered: bool) -> None:
    world = cluster()
    world.run(1)
    pods = [world.add_pod(name, "app", cpu="-1") for name in ("a", "b")]
    if answered:
        world.run(1)
        assert "TaskRejected/Scheduling" in world.reasons(pods[0].uid)
    else:  # the answers come when the pods are gone already
        while not any(isinstance(each, si.AllocationRequest) for each in world.sent):
            world.half_step()
    assert world.app_state("app") == "Running"
    for pod in pods:
        world.delete_pod(pod.uid)
    if not answered:
        world.inputs.rotate(len(pods))
    world.run(1)
    assert (world.app_state("app"), world.core_app("app")) == ("", "Killed")
    # the id is free
    pod = world.add_pod("c", "app", duration=1)
    world.run(60)
    assert world.pods[pod.uid].status.phase == "Succeeded"
    assert world.app_state("app") == ""


def test_k178_one_pod_that_the_core_has_taken_lets_the_core_complete_the_application() -> None:
    world = cluster()
    bad = world.add_pod("a", "app", cpu="-1")
    world.add_pod("b", "app", duration=1)
    world.run(2)
    world.delete_pod(bad.uid)
    world.run(2)
    assert world.app_state("app") == "Running"  # it completes 30 s after its last pod
    assert world.core_app("app") == "Waiting"
    world.run(60)
    assert world.app_state("app") == ""
    assert world.core_app("app") == "Completed"


def test_k33_a_pod_that_vanishes_early_leaves_nothing_and_its_answer_is_not_for_the_next() -> None:
    world = cluster()
    world.run(1)
    pod = world.add_pod("a", "app")
    for action in world.shim.handle(world.inputs.popleft(), world.now):
        world.carry_out(action)
    world.delete_pod(pod.uid)
    world.run(2)
    assert world.app_state("app") == ""
    assert world.core_app("app") in ("", "Completed", "Killed")
    # and the id can be used at once
    pod = world.add_pod("b", "app")
    world.run(2)
    assert world.pods[pod.uid].status.phase == "Running"
    world = cluster(queues=STRICT)
    world.run(1)
    first = world.add_pod("a", "app", queue="root.nowhere")
    world.delete_pod(first.uid)
    second = world.add_pod("b", "app", queue="root.open")
    world.run(2)
    assert world.pods[second.uid].status.phase == "Running"
    world.check()


def test_k89_a_gated_pod_waits_and_its_application_with_it(world: World) -> None:
    pod = world.add_pod("a", "app", scheduling_gates=(NamedReference("quota/wait"),))
    world.run(2)
    assert added(world) == []
    assert sum("quota/wait" in each.note for each in world.records) == 1
    world.add_pod("b", "app")
    world.run(1)
    assert len(added(world)) == 1
    assert sum("quota/wait" in each.note for each in world.records) == 1
    assert world.pods[pod.uid].status.phase == "Pending"
    world.ungate(pod.uid)
    world.run(1)
    assert world.phases() == {"Running": 2}


def test_k89_a_pod_that_comes_does_not_visit_those_that_are_gated(world: World) -> None:
    looks, count = 0, 100

    class Gates(tuple[NamedReference, ...]):
        def __bool__(self) -> bool:
            nonlocal looks
            looks += 1
            return True

    for n in range(count):
        world.add_pod(f"p-{n}", "app", scheduling_gates=Gates([NamedReference("quota/wait")]))
        world.run(0.01)
    assert looks < 10 * count


PARENTS = queues(
    "{name: teams, parent: true}",
    rules="[{name: tag, value: namespace, create: true,"
    " parent: {name: tag, value: namespace.parentqueue}}]",
)


def blue(**limit: str) -> World:
    world = cluster("8", queues=PARENTS)
    annotations = {f"yunikorn.apache.org/namespace.{key}": text for key, text in limit.items()}
    parent = {"yunikorn.apache.org/parentqueue": "root.teams"}
    world.add_namespace("blue", **annotations, **parent)
    return world


def test_t17_quota_parent_queue_and_max_applications_of_a_namespace() -> None:
    world = blue(quota='{"cpu": "2"}')
    for n in range(3):
        world.add_pod(f"p-{n}", "app", namespace="blue")
    world.run(5)
    assert world.phases() == {"Running": 2, "Pending": 1}
    waiting = next(pod for pod in world.pods.values() if not pod.spec.node_name)
    assert world.conditions[waiting.uid][0] == "SchedulingSkipped"
    (app,) = added(world)
    assert app.tags["namespace.parentqueue"] == "root.teams"
    world.inputs.append(Changed("DELETED", world.namespaces.pop("blue")))
    world.add_pod("a", "other", namespace="blue")
    world.run(1)
    assert "namespace.parentqueue" not in added(world)[1].tags
    world = blue(maxApps="1")
    world.add_pod("a", "first", namespace="blue", duration=20)
    world.add_pod("b", "second", namespace="blue", duration=20)
    world.run(5)
    assert world.phases("a") == {"Running": 1}
    assert world.phases("b") == {"Pending": 1}
    world.run(200)
    assert world.phases() == {"Succeeded": 2}


def test_k43_a_quota_that_cannot_be_read_is_told_on_the_namespace() -> None:
    world = blue(quota="much")
    world.add_pod("a", "app", namespace="blue")
    world.run(2)
    assert [each.name for each in world.records if each.kind == "Namespace"] == ["blue"]
    assert world.phases() == {"Running": 1}


def test_k71_k81_originators_say_so_and_placeholders_have_conditions_without_a_node() -> None:
    world = cluster()
    pod = world.add_gang(2, members=2)
    world.run(3)
    asks = [ask for each in world.sent for ask in getattr(each, "asks", ())]
    assert {ask.allocationKey for ask in asks if ask.Originator} == {pod.uid}
    world = cluster("1", queues=WHOLE)
    world.add_gang(members=2)
    world.run(3)
    (waiting,) = [pod for pod in world.placeholders if not pod.spec.node_name]
    assert world.conditions[waiting.uid][0] == "Unschedulable"
    world.add_node("n2", cpu="1")
    world.run(1)
    assert waiting.uid not in world.conditions


def test_k146_a_member_that_somebody_else_placed_starts_the_gang() -> None:
    world = cluster("2", queues=WHOLE)
    world.add_gang(3, policy=SOFT)
    (worker, _) = world.named("worker")
    world.run(1)
    assert world.app_state("spark") == "Reserving"
    world.add_node("n2", cpu="1")
    world.cordon("n2")
    world.place(worker.uid, "n2")
    world.run(60)
    assert world.phases("driver") == {"Running": 1}
    assert world.phases("worker") == {"Running": 2}
    assert world.placeholders == []
    world.check()


def test_k60_a_placeholder_that_comes_after_the_end_of_its_application_ends_quietly() -> None:
    """Its create was under way when the gang failed, and its delete is when the application is forgotten."""

    class Slow(World):
        held: list[Action]
        slow: tuple[type, ...] = ()

        def _effect(self, action: Action) -> None:
            if isinstance(action, self.slow):
                self.held.append(action)
            else:
                super()._effect(action)

        def let_go(self, kind: type, most: int = 9) -> None:
            for action in [each for each in self.held if isinstance(each, kind)][:most]:
                self.held.remove(action)
                super()._effect(action)
            self.settle()

    world = Slow(queues=WHOLE)
    world.held, world.slow = [], (actions.Create, actions.Delete, actions.FailPod)
    world.add_node("n1", cpu="4")
    world.add_gang(members=2, policy=HARD)
    world.run(1)
    world.let_go(actions.Create, 1)
    world.run(20)
    world.let_go(actions.Delete)
    assert world.app_state("spark") in ("Failing", "Failed")
    world.let_go(actions.Create)
    (late,) = world.placeholders
    world.let_go(actions.FailPod)
    world.run(120)
    assert world.app_state("spark") == ""
    assert late.uid in world.pods
    world.let_go(actions.Delete)
    assert late.uid not in world.pods
    assert not world.shim._kernel.tasks
    assert world.audit().fleeting == 0
