"""Allocation to bind: every answer, and what follows from it (K98 to K114, T11, T15)."""

from k8s_queues import queues
from k8s_world import World, cluster, failed

from quadriga.k8s.shim.actions import Bind, Create
from quadriga.k8s.shim.inputs import BindEnded, CreateEnded
from quadriga.si import AllocationRequest


def test_k108_the_old_allocation_and_the_new_ask_go_in_one_message() -> None:
    world = cluster(nodes=2)
    tried = world.answer(Bind, failed, times=1)
    pod = world.add_pod("a", "app")
    world.run(5)
    assert world.pods[pod.uid].spec.node_name not in ("", tried[0].node)
    assert "PodBindFailure/Binding" in world.reasons(pod.uid)
    sent = [each for each in world.sent if isinstance(each, AllocationRequest)]
    (both,) = [each for each in sent if each.releases.allocationsToRelease]
    (ask,), (release,) = both.asks, both.releases.allocationsToRelease
    assert (ask.allocationKey, release.allocationKey) == (pod.uid, pod.uid)
    assert f"{pod.uid}-0" == release.UUID
    assert world.app_state("app") == "Running"
    world.check()


def test_k109_a_node_that_always_fails_does_not_keep_the_pod() -> None:
    world = cluster(nodes=2)
    world.answer(Bind, lambda bind: failed(bind, "422") if bind.node == "n1" else None)
    for n in range(6):
        world.add_pod(f"p-{n}", "app", duration=20)
    world.run(10)
    assert {pod.spec.node_name for pod in world.pods.values() if pod.spec.node_name} == {"n2"}
    world.check()
    world.run(100)
    assert world.phases() == {"Succeeded": 6}


def test_t11_k91_a_pod_that_somebody_else_bound_is_counted_where_it_is() -> None:
    world = cluster(nodes=2)

    def elsewhere(bind: Bind) -> BindEnded:
        other = "n2" if bind.node == "n1" else "n1"
        world.place(bind.pod.uid, other)
        return BindEnded(bind.pod.uid, "elsewhere", other)

    world.answer(Bind, elsewhere)
    world.add_pod("a", "app", duration=10)
    world.run(5)
    world.check()
    world.run(60)
    world.check_over("app")
    world = cluster(nodes=2)
    pod = world.add_pod("a", "app", cpu="100")
    world.run(2)
    world.add_node("big", cpu="200")
    world.cordon("big")
    world.run(2)
    world.place(pod.uid, "big")
    world.run(2)
    world.check()
    assert world.core_state() == {pod.uid: "big"}


def test_t11_a_reply_that_is_lost_was_a_bind_all_the_same() -> None:
    """The watch shows the node, the reply says nothing, and a second answer comes late."""
    world = cluster(nodes=2)

    def lost(bind: Bind) -> BindEnded:
        world.place(bind.pod.uid, bind.node)
        return failed(bind, "timeout")

    world.answer(Bind, lost)
    pod = world.add_pod("a", "app", duration=10)
    world.run(3)
    assert world.reasons(pod.uid).count("Scheduled/Binding") == 1
    world.check()


def test_t11_a_bind_that_hangs_is_given_up_and_the_pod_ends_up_somewhere() -> None:
    world = cluster(nodes=2)
    world.answer(Bind, lambda bind: BindEnded("nobody", "failed"), times=1)
    pod = world.add_pod("a", "app")
    world.run(129)
    assert world.pods[pod.uid].spec.node_name == ""
    world.run(3)
    assert world.pods[pod.uid].status.phase == "Running"
    assert any("has taken too long" in text for text in world.log_warnings)
    world.check()


def test_k100_a_refused_assumption_costs_no_write() -> None:
    world = cluster(nodes=2)
    refused: list[str] = []

    def objection(uid: str, node: str) -> str | None:
        refused.append(node)
        return "NodePorts: port 80 is taken" if len(refused) == 1 else None

    world.cache.objection = objection  # type: ignore[method-assign]
    pod = world.add_pod("a", "app")
    world.run(3)
    assert world.log.count("Bind a") == 1
    assert world.pods[pod.uid].spec.node_name != refused[0]
    assert "AssumePodFailed/Scheduling" in world.reasons(pod.uid)
    world.check()


def test_k111_an_allocation_of_a_pod_that_has_ended_is_given_back() -> None:
    world = cluster(nodes=2)
    pod = world.add_pod("a", "app")
    other = world.add_pod("b", "app", duration=50)
    world.cache.objection = lambda uid, node: (  # type: ignore[method-assign]
        world.delete_pod(pod.uid) if uid == pod.uid and pod.uid in world.pods else None
    )
    world.run(5)
    assert world.core_state() == {other.uid: world.pods[other.uid].spec.node_name}
    world.check()


def test_k72_a_name_that_is_taken_is_replaced(world: World) -> None:
    def taken(create: Create) -> CreateEnded:
        name = create.manifest["metadata"]["name"]
        return CreateEnded(create.application_id, create.group, name, "name_taken")

    world.answer(Create, taken, times=1)
    world.add_gang(members=2)
    world.run(3)
    assert world.phases("driver") == {"Running": 1}
    assert world.log.count("Create") == 3


def test_k73_a_refused_create_makes_the_gang_an_ordinary_application(world: World) -> None:
    def over_quota(create: Create) -> CreateEnded | None:
        name = create.manifest["metadata"]["name"]
        refused = CreateEnded(create.application_id, "w", name, "refused", "exceeded quota")
        return refused if len(creates) == 2 else None

    creates = world.answer(Create, over_quota)
    pod = world.add_gang(2, duration=10)
    world.run(5)
    assert world.placeholders == []
    assert world.phases() == {"Running": 2}
    assert "GangScheduling/PlaceholderCreateFailed" in world.reasons(pod.uid)
    assert world.app_state("spark") == "Running"
    world.check()
    world.run(60)
    world.check_over("spark")


GUARANTEED = queues(
    "{name: high, resources: {guaranteed: {vcore: 2000m}}, properties: {preemption.delay: 1s}}",
    "{name: low, resources: {guaranteed: {vcore: 1000m}}}",
)


def test_t15_a_victim_is_deleted_and_the_preemptor_runs_in_its_place() -> None:
    world = cluster(queues=GUARANTEED)
    for n in range(4):
        world.add_pod(f"low-{n}", "low", queue="root.low")
    world.run(5)
    assert world.phases("low") == {"Running": 4}
    high = world.add_pod("high", "high", queue="root.high")
    world.run(60)
    assert world.pods[high.uid].status.phase == "Running"
    (preempted,) = [each for each in world.deletes if each.preempted]
    assert "Preempted/Preempting" in world.reasons(preempted.pod.uid)
    world.check()


def test_t15_a_daemon_set_gets_its_place_on_a_full_cluster() -> None:
    world = cluster(nodes=2)
    for n in range(8):
        world.add_pod(f"batch-{n}", "batch")
    world.run(5)
    assert world.phases("batch") == {"Running": 8}
    waiting = world.add_pod("waiting", "other", cpu="1")
    agents = [world.add_pod(f"agent-{node}", "agent", daemon=node) for node in ("n1", "n2")]
    world.run(60)
    assert {world.pods[agent.uid].spec.node_name for agent in agents} == {"n1", "n2"}
    assert world.phases("agent") == {"Running": 2}
    assert len([each for each in world.deletes if each.preempted]) == 2
    assert world.pods[waiting.uid].spec.node_name == ""
    assert {"Preempted/Preempting"} <= set(world.reasons())
    world.check()


#: the queues of the example of preemption that YuniKorn's shim comes with
EXAMPLE = queues(
    "{name: sandbox, resources: {max: {memory: 1000Mi, vcore: 1000m}}, queues: ["
    "{name: tenants, properties: {preemption.policy: fence, preemption.delay: 10s}, queues: ["
    "{name: normal, resources: {guaranteed: {memory: 300Mi, vcore: 300m}}},"
    '{name: low, properties: {priority.offset: "-1000"}}]},'
    '{name: system, queues: [{name: low, properties: {priority.offset: "-9999"}}]}]}'
)


def test_t15_a_queue_without_a_guarantee_gives_way_inside_the_fence() -> None:
    world = cluster(nodes=2, queues=EXAMPLE)
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


def test_k90_a_pod_that_is_being_deleted_is_not_asked_for(world: World) -> None:
    waiting = world.add_pod("waiting", "app", cpu="100")
    world.add_pod("other", "app", duration=100)
    world.run(2)
    world.terminate(waiting.uid)
    world.add_node("big", cpu="200")
    world.run(5)
    assert world.pods[waiting.uid].spec.node_name == ""
    world.check()
