"""Allocation to bind: every answer, and what follows from it (K98 to K114, T11, T15)."""

from __future__ import annotations

from k8s_world import World, gang

from quadriga.k8s.shim import actions
from quadriga.k8s.shim.actions import Action
from quadriga.k8s.shim.inputs import BindEnded, CreateEnded
from quadriga.si import AllocationRequest


def two_nodes() -> World:
    world = World()
    world.add_node("n1")
    world.add_node("n2")
    return world


def test_t11_a_bind_that_fails_goes_to_another_node() -> None:
    world = two_nodes()
    tried: list[str] = []

    def fault(action: Action) -> BindEnded | None:
        if isinstance(action, actions.Bind):
            tried.append(action.node)
            if action.node == tried[0]:
                return BindEnded(action.pod.uid, "failed", reason="500")
        return None

    world.fault = fault
    pod = world.add_pod("a", "app", duration=60)
    world.run(5)
    assert len(tried) == 2
    assert world.pods[pod.uid].spec.node_name == tried[1] != tried[0]
    assert "PodBindFailure/Binding" in world.reasons(pod.uid)
    world.check()
    assert world.core_app("app") == "Running"


def test_k108_the_old_allocation_and_the_new_ask_go_in_one_message() -> None:
    world = two_nodes()
    failures = [BindEnded("", "failed", reason="500")]

    def fault(action: Action) -> BindEnded | None:
        if isinstance(action, actions.Bind) and failures:
            failures.clear()
            return BindEnded(action.pod.uid, "failed", reason="500")
        return None

    world.fault = fault
    pod = world.add_pod("a", "app")
    world.run(5)
    both = [
        each
        for each in world.sent
        if isinstance(each, AllocationRequest) and each.releases.allocationsToRelease
    ]
    assert len(both) == 1
    (ask,), (release,) = both[0].asks, both[0].releases.allocationsToRelease
    assert (ask.allocationKey, release.allocationKey) == (pod.uid, pod.uid)
    assert f"{pod.uid}-0" == release.UUID
    assert world.app_state("app") == "Running"
    world.check()


def test_k109_a_node_that_always_fails_does_not_keep_the_pod() -> None:
    world = two_nodes()
    world.fault = lambda action: (
        BindEnded(action.pod.uid, "failed", reason="422")
        if isinstance(action, actions.Bind) and action.node == "n1"
        else None
    )
    for n in range(6):
        world.add_pod(f"p-{n}", "app", duration=20)
    world.run(10)
    assert {pod.spec.node_name for pod in world.pods.values() if pod.spec.node_name} == {"n2"}
    world.check()
    world.run(100)
    assert world.phases() == {"Succeeded": 6}


def test_t11_a_pod_that_somebody_else_bound_is_counted_where_it_is() -> None:
    world = two_nodes()

    def fault(action: Action) -> BindEnded | None:
        if isinstance(action, actions.Bind):
            other = "n2" if action.node == "n1" else "n1"
            world.place(action.pod.uid, other)
            return BindEnded(action.pod.uid, "elsewhere", other)
        return None

    world.fault = fault
    world.add_pod("a", "app", duration=10)
    world.run(5)
    world.check()
    world.run(60)
    assert world.books() == {}
    assert world.app_state("app") == ""


def test_k91_a_pod_that_is_bound_by_hand_while_it_waits() -> None:
    world = two_nodes()
    pod = world.add_pod("a", "app", cpu="100")
    world.run(2)
    world.add_node("big", cpu="200")
    world.cordon("big")
    world.run(2)
    world.place(pod.uid, "big")
    world.run(2)
    world.check()
    assert world.books() == {pod.uid: "big"}


def test_t11_a_pod_that_is_gone_gives_its_allocation_back() -> None:
    world = two_nodes()

    def fault(action: Action) -> BindEnded | None:
        if isinstance(action, actions.Bind):
            world.delete_pod(action.pod.uid)
            return BindEnded(action.pod.uid, "gone")
        return None

    world.fault = fault
    world.add_pod("a", "app")
    world.run(40)
    assert world.pods == {}
    assert world.books() == {}
    assert world.app_state("app") == ""


def test_t11_a_reply_that_is_lost_was_a_bind_all_the_same() -> None:
    """The watch shows the node, the reply says nothing, and a second answer comes late."""
    world = two_nodes()

    def fault(action: Action) -> BindEnded | None:
        if isinstance(action, actions.Bind):
            world.place(action.pod.uid, action.node)
            return BindEnded(action.pod.uid, "failed", reason="timeout")
        return None

    world.fault = fault
    pod = world.add_pod("a", "app", duration=10)
    world.run(3)
    assert world.reasons(pod.uid).count("Scheduled/Binding") == 1
    world.check()


def test_t11_a_bind_that_hangs_is_given_up_and_the_pod_ends_up_somewhere() -> None:
    world = two_nodes()
    hanging: list[str] = []

    def fault(action: Action) -> BindEnded | None:
        if isinstance(action, actions.Bind) and not hanging:
            hanging.append(action.pod.uid)
            return BindEnded("nobody", "failed")
        return None

    world.fault = fault
    pod = world.add_pod("a", "app")
    world.run(129)
    assert world.pods[pod.uid].spec.node_name == ""
    world.run(3)
    assert world.pods[pod.uid].status.phase == "Running"
    assert any("has taken too long" in text for text in world.log_warnings)
    world.check()


def test_k100_a_refused_assumption_costs_no_write() -> None:
    world = two_nodes()
    refused: list[str] = []

    def objection(uid: str, node: str) -> str | None:
        if not refused:
            refused.append(node)
            return "NodePorts: port 80 is taken"
        return None

    world.cache.objection = objection  # type: ignore[method-assign]
    pod = world.add_pod("a", "app")
    world.run(3)
    assert world.log.count("Bind a") == 1
    assert world.pods[pod.uid].spec.node_name not in refused
    assert "AssumePodFailed/Scheduling" in world.reasons(pod.uid)
    world.check()


def test_k111_an_allocation_of_a_pod_that_has_ended_is_given_back() -> None:
    world = two_nodes()
    pod = world.add_pod("a", "app")
    other = world.add_pod("b", "app", duration=50)
    world.cache.objection = lambda uid, node: (  # type: ignore[method-assign]
        world.delete_pod(pod.uid) if uid == pod.uid and pod.uid in world.pods else None
    )
    world.run(5)
    assert world.books() == {other.uid: world.pods[other.uid].spec.node_name}
    world.check()


def test_k72_a_name_that_is_taken_is_replaced() -> None:
    world = World()
    world.add_node("n1")
    taken: list[str] = []

    def fault(action: Action) -> CreateEnded | None:
        if isinstance(action, actions.Create) and not taken:
            name = action.manifest["metadata"]["name"]
            taken.append(name)
            return CreateEnded(action.application_id, action.group, name, "name_taken")
        return None

    world.fault = fault
    world.add_pod("driver", "spark", group="w", groups=[gang("w", 2)])
    world.run(3)
    assert world.phases("driver") == {"Running": 1}
    assert world.log.count("Create") == 3


def test_k73_a_refused_create_makes_the_gang_an_ordinary_application() -> None:
    world = World()
    world.add_node("n1")
    creates: list[str] = []

    def fault(action: Action) -> CreateEnded | None:
        if isinstance(action, actions.Create):
            name = action.manifest["metadata"]["name"]
            creates.append(name)
            if len(creates) == 2:
                return CreateEnded(action.application_id, "w", name, "refused", "exceeded quota")
        return None

    world.fault = fault
    pod = world.add_pod("driver", "spark", group="w", groups=[gang("w", 3)], duration=10)
    world.add_pod("worker", "spark", group="w", duration=10)
    world.run(5)
    assert world.placeholders == []
    assert world.phases() == {"Running": 2}
    assert "GangScheduling/PlaceholderCreateFailed" in world.reasons(pod.uid)
    assert world.app_state("spark") == "Running"
    world.check()
    world.run(60)
    assert world.books() == {}
    assert world.app_state("spark") == ""


GUARANTEED = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: high
            resources:
              guaranteed: {vcore: 2000m}
            properties: {preemption.delay: 1s}
          - name: low
            resources:
              guaranteed: {vcore: 1000m}
"""


def test_t15_a_victim_is_deleted_and_the_preemptor_runs_in_its_place() -> None:
    world = World(queues=GUARANTEED)
    world.add_node("n1", cpu="4")
    for n in range(4):
        world.add_pod(f"low-{n}", "low", queue="root.low")
    world.run(5)
    assert world.phases("low") == {"Running": 4}
    high = world.add_pod("high", "high", queue="root.high")
    world.run(60)
    assert world.pods[high.uid].status.phase == "Running"
    preempted = [each for each in world.deletes if each.preempted]
    assert len(preempted) == 1
    assert "Preempted/Preempting" in world.reasons(preempted[0].pod.uid)
    world.check()


def test_t15_a_daemon_set_gets_its_place_on_a_full_cluster() -> None:
    world = World()
    for name in ("n1", "n2"):
        world.add_node(name, cpu="4")
    for n in range(8):
        world.add_pod(f"batch-{n}", "batch")
    world.run(5)
    assert world.phases("batch") == {"Running": 8}
    waiting = world.add_pod("waiting", "other", cpu="1")
    agents = [world.add_pod(f"agent-{node}", "agent", daemon=node) for node in ("n1", "n2")]
    world.run(60)
    placed = {world.pods[agent.uid].spec.node_name for agent in agents}
    assert placed == {"n1", "n2"}
    assert world.phases("agent") == {"Running": 2}
    assert len([each for each in world.deletes if each.preempted]) == 2
    assert world.pods[waiting.uid].spec.node_name == ""
    assert {"Preempted/Preempting"} <= set(world.reasons())
    world.check()


#: the queues of the example of preemption that YuniKorn's shim comes with
EXAMPLE = """
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: sandbox
            resources:
              max: {memory: 1000Mi, vcore: 1000m}
            queues:
              - name: tenants
                properties: {preemption.policy: fence, preemption.delay: 10s}
                queues:
                  - name: normal
                    submitacl: "*"
                    resources:
                      guaranteed: {memory: 300Mi, vcore: 300m}
                  - name: low
                    submitacl: "*"
                    properties: {priority.offset: "-1000"}
              - name: system
                queues:
                  - name: low
                    submitacl: "*"
                    properties: {priority.offset: "-9999"}
"""


def test_t15_a_queue_without_a_guarantee_gives_way_inside_the_fence() -> None:
    world = World(queues=EXAMPLE)
    for name in ("n1", "n2"):
        world.add_node(name)
    for n in range(5):
        world.add_pod(f"outside-{n}", "outside", cpu="100m", queue="root.sandbox.system.low")
        world.add_pod(f"low-{n}", "low", cpu="100m", queue="root.sandbox.tenants.low")
    world.run(5)
    assert world.phases("outside") + world.phases("low") == {"Running": 10}
    for n in range(10):
        world.add_pod(f"normal-{n}", "normal", cpu="100m", queue="root.sandbox.tenants.normal")
    world.run(120)
    assert world.phases("normal") == {"Running": 3, "Pending": 7}
    assert world.phases("outside") == {"Running": 5}
    assert world.phases("low") == {"Running": 2}
    assert len([each for each in world.deletes if each.preempted]) == 3
    world.check()


def test_k90_a_pod_that_is_being_deleted_is_not_asked_for() -> None:
    world = World()
    world.add_node("n1")
    waiting = world.add_pod("waiting", "app", cpu="100")
    world.add_pod("other", "app", duration=100)
    world.run(2)
    world.terminate(waiting.uid)
    world.add_node("big", cpu="200")
    world.run(5)
    assert world.pods[waiting.uid].spec.node_name == ""
    world.check()
