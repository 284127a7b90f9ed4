"""One default of the node order for all that reads a queue file, and logs that name it."""

import logging

import pytest

from quadriga.core import Options
from quadriga.core.config import DEFAULT_NODE_SORT_POLICY, load
from quadriga.core.driver.service import SchedulerService
from quadriga.core.views import Views
from quadriga.si import UpdateConfigurationRequest
from quadriga.sim.options import SimulationOptions
from quadriga.sim.scripted.script import ONE_QUEUE
from quadriga.sim.selection import first
from quadriga.sim.simulation import Simulation
from quadriga.sim.workload import embedded
from tests.core.service_side import Heard, register

WORKLOAD = first(embedded(days=1), None, 3)


def _served(text: str) -> str:
    service = SchedulerService(manual=True)
    service.register_resource_manager(register(config=text), Heard())
    return Views(service.scheduler).configuration()["partitions"][0]["nodesortpolicy"]["type"]


def test_a_queue_file_without_a_node_order_is_simulated_as_it_is_served() -> None:
    queues = SimulationOptions(config=ONE_QUEUE, queue_map=(("*", "root.default"),))
    report = Simulation(WORKLOAD, queues).run()
    assert report.data["options"]["node_sort"] == _served(ONE_QUEUE) == DEFAULT_NODE_SORT_POLICY
    made = Simulation(WORKLOAD, SimulationOptions()).run()
    assert made.data["options"]["node_sort"] == DEFAULT_NODE_SORT_POLICY
    assert Options().node_sort_policy == load(ONE_QUEUE).partitions[0].node_sort_policy


@pytest.mark.parametrize("policy", ["fair", "binpacking"])
def test_the_report_names_the_node_order_of_the_file(policy: str) -> None:
    text = ONE_QUEUE + f"    nodesortpolicy: {{type: {policy}}}\n"
    options = SimulationOptions(config=text, queue_map=(("*", "root.default"),))
    told = Simulation(WORKLOAD, options).run().data["options"]
    assert told["node_sort"] == _served(text) == policy
    # the file decides these for each queue
    assert told["policy"] is None and told["gang_admission"] is None


def test_the_log_names_the_node_order_of_each_manager(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "quadriga.service")
    service = SchedulerService(manual=True)
    service.configure("")
    service.register_resource_manager(register("a", config=""), Heard())
    text = ONE_QUEUE + "    nodesortpolicy: {type: fair}\n"
    service.register_resource_manager(register("b", config=text), Heard())
    assert caplog.messages == [
        "default queues: nodes are ordered by bestfit (partition default)",
        "resource manager a: nodes are ordered by bestfit (partition default)",
        "resource manager b: nodes are ordered by fair (partition default)",
    ]


def test_k55_the_log_warns_of_a_resource_managers_queues(caplog: pytest.LogCaptureFixture) -> None:
    """Those of the default queues are told by who has read them."""
    rules = "placementrules: [{name: provided}, {name: user, create: true}]"
    text = f"partitions: [{{name: default, {rules}, queues: [{{name: root, submitacl: '*'}}]}}]"
    service = SchedulerService(manual=True)
    service.configure(text)
    service.register_resource_manager(register("a", config=""), Heard())
    assert caplog.messages == []
    service.register_resource_manager(register("b", config=ONE_QUEUE), Heard())
    service.update_configuration(
        UpdateConfigurationRequest(rmID="b", config=text.replace("default", "DEFAULT"))
    )
    (told,) = caplog.messages
    assert told.startswith(
        "resource manager b: warning 1 of 1: partitions[0].placementrules[0] (line 1): everyone may name the queue"
    )


def test_the_log_names_at_most_five_partitions() -> None:
    queues = "queues: [{name: root}]"
    text = "partitions:\n" + "".join(f"- {{name: p{n}, {queues}}}\n" for n in range(7))
    assert load(text).node_order == "bestfit (partitions p0, p1, p2, p3, p4 and 2 more)"
