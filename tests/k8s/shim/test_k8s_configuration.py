"""Settings that change, and the lease (K11, K47 to K49, K142, K144, K151, K152, T16)."""

from collections import deque

from k8s_queues import DEFAULT, SMALL, queues
from k8s_world import World, cluster

from quadriga.k8s.shim import inputs
from quadriga.si import NodeResponse, UpdateConfigurationRequest

MORE = queues(DEFAULT, SMALL, "{name: third}")


def updates(world: World) -> list[UpdateConfigurationRequest]:
    return [each for each in world.sent if isinstance(each, UpdateConfigurationRequest)]


def change(world: World, values: dict[str, str]) -> None:
    world.inputs.append(inputs.ConfigurationChanged(values))
    world.run(1)


def test_t16_a_good_change_reaches_the_core(world: World) -> None:
    world.run(1)
    change(world, {"queues.yaml": MORE})
    assert [each.config for each in updates(world)] == [MORE]
    pod = world.add_pod("a", "app", queue="root.third")
    world.run(1)
    assert world.pods[pod.uid].status.phase == "Running"
    change(world, {"queues.yaml": MORE})
    assert len(updates(world)) == 1


def test_t16_queues_that_the_core_refuses_are_an_event_and_the_old_ones_stay(world: World) -> None:
    world.run(1)
    change(world, {"queues.yaml": "partitions: 7"})
    (record,) = [each for each in world.records if each.reason == "ConfigurationRejected"]
    where = (record.kind, record.namespace, record.name)
    assert where == ("ConfigMap", "quadriga", "yunikorn-configs")
    assert record.note.startswith("queues.yaml: "), "the key in the ConfigMap"
    world.add_pod("a", "app", queue="root.small")
    world.run(1)
    assert world.phases() == {"Running": 1}


def test_k49_one_wrong_value_rejects_the_whole_change() -> None:
    world = World()
    world.run(1)
    bad = {"service.enableConfigHotRefresh": "perhaps", "kubernetes.qps": "0"}
    change(world, {"queues.yaml": MORE, **bad})
    world.inputs.append(inputs.ConfigurationChanged({}, ["queues.yaml.gz: the archive is broken"]))
    world.run(1)
    assert updates(world) == []
    notes = [each.note for each in world.records if each.reason == "ConfigurationRejected"]
    assert len(notes) == 3
    assert any("perhaps" in note for note in notes)
    assert any("archive" in note for note in notes)


def test_k49_a_setting_that_needs_a_restart_is_told_and_the_rest_applies() -> None:
    world = World()
    world.run(1)
    change(world, {"queues.yaml": MORE, "service.clusterId": "another"})
    assert [each.rmID for each in updates(world)] == ["mycluster"]
    assert any("service.clusterId" in text for text in world.log_warnings)


def test_k144_a_restart_with_other_queues_puts_running_pods_into_the_recovery_queue() -> None:
    world = cluster(queues=queues("{name: gone}"))
    pod = world.add_pod("a", "app", queue="root.gone", duration=60)
    world.run(2)
    world.queues = queues("{name: other}", rules="[{name: provided}]")
    world.restart()
    world.run(2)
    assert world.core_state() == {pod.uid: "n1"}
    assert "ApplicationFailed/Scheduling" not in world.reasons(pod.uid)
    world.run(100)
    assert world.core_state() == {}


def test_k11_k24_nothing_is_sent_before_both_the_lease_and_the_lists() -> None:
    world = World()
    world.inputs.clear()
    world.add_node("n1")
    world.add_pod("a", "app")
    world.inputs.append(inputs.Synced())
    world.run(5)
    assert world.log == []
    assert world.shim.state == "Waiting"
    world.inputs.append(inputs.LeaseHeld())
    world.run(1)
    assert world.phases() == {"Running": 1}
    world.inputs.append(inputs.LeaseLost("the server did not answer"))
    world.run(1)
    assert world.stopped.code == 1
    before = list(world.log)
    world.stopped = None
    world.add_pod("b", "app")
    world.run(5)
    assert world.log == before
    world = World()
    world.inputs.clear()
    world.inputs.append(inputs.LeaseHeld())
    world.add_node("n1")
    world.add_pod("a", "app")
    world.run(1)
    assert (world.shim.state, world.log) == ("Syncing", [])
    world.inputs.append(inputs.Synced())
    world.run(1)
    assert world.shim.state == "Serving"


def test_k142_a_recovery_without_answers_ends_the_process_and_names_what_is_missing() -> None:
    world = cluster(nodes=2)
    world.restart()

    class Deaf(deque[object]):
        def append(self, input: object) -> None:
            if not (
                isinstance(input, inputs.CoreAnswered) and isinstance(input.message, NodeResponse)
            ):
                super().append(input)

    world.inputs = Deaf(world.inputs)  # type: ignore[assignment]
    world.run(59)
    assert world.stopped is None
    world.run(2)
    assert world.stopped.code == 1
    assert "nodes without an answer: n1, n2" in world.stopped.reason


def test_k151_a_core_that_was_restarted_hears_everything_again() -> None:
    world = cluster(nodes=2)
    world.add_pod("other", scheduler="default-scheduler", node="n1")
    world.add_gang(members=2, duration=100)
    world.add_pod("a", "app", duration=100)
    waiting = world.add_pod("b", "app", cpu="100")
    world.run(5)
    running = dict(world.core_state())
    assert len(running) == 4
    world.forget_core()
    world.run(5)
    assert world.core_state() == running
    assert world.shim.state == "Serving"
    assert world.conditions[waiting.uid][0] == "Unschedulable"
    world.check()
    world.inputs.append(inputs.CoreForgot())
    world.run(5)
    world.check()
    world.run(300)
    assert list(world.core_state().values()) == ["n1"]  # the foreign pod
