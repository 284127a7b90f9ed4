"""Devices that a DeviceClass serves by the name of an extended resource: only the default scheduler places them
(K207)."""

import asyncio
import json
from typing import Any

import pytest
from k8s_world import World, cluster, gang
from msgspec.structs import replace

from quadriga.k8s.conversion.resources import DEVICE_CLASS
from quadriga.k8s.driver.explaining import Explainer, LocalCore
from quadriga.k8s.objects import Container, Pod, ResourceRequirements
from quadriga.k8s.transport.discovery import DeviceClasses
from quadriga.k8s.transport.requester import NoAnswer
from tests.k8s.fake_api import FakeApi
from tests.k8s.test_k8s_driver import at_work, ours

GPU = "example.com/gpu"
CLASSES: dict[str, list[Any]] = {
    "items": [
        {"metadata": {"name": "plain"}, "spec": {"selectors": []}},
        {"metadata": {"name": "gpu.example.com"}, "spec": {"extendedResourceName": GPU}},
    ]
}
SECOND = 1_000_000_000


class Server:
    def __init__(self, answer: Any = CLASSES) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.now = 0

    async def request(self, method: str, path: str, *_: Any) -> tuple[int, bytes]:
        self.asked.append(path)
        if self.answer is NoAnswer:
            raise NoAnswer("nobody listens")
        if isinstance(self.answer, int):
            return self.answer, b"{}"
        return 200, json.dumps(self.answer).encode()


def told(resource: str, server: Server, *, offered: bool = False) -> str:
    """The reason of a pod that asks for one and finds no room."""
    world = cluster("1")
    if offered:
        status = world.nodes["n1"].status
        status = replace(status, allocatable={**status.allocatable, resource: "1"})
        world.set_node(replace(world.nodes["n1"], status=status))
    world.add_pod("first", "app")
    devices = (Container("init", ResourceRequirements({resource: "1"})),)
    pod = world.add_pod("a", "app", init_containers=devices)
    world.run(5)
    assert world.phases("a") == {"Pending": 1}
    text = explained(world, pod, server)
    assert text is not None and text.startswith("0 of 1 node: ")
    return text.partition("Smallest change: ")[2]


def explained(world: World, pod: Pod, server: Server) -> str | None:
    explainer = Explainer(
        LocalCore(world.core),
        rm_id=world.settings.cluster_id,
        ask_of=world.shim.ask_of,
        nodes=world.cache.node_names,
        refusals=world.cache.refusals,
        unoffered=world.shim.unoffered,
        device_class=DeviceClasses(server, lambda: 0).serving,
    )
    return asyncio.run(explainer.explain(pod.uid))


@pytest.mark.parametrize("resource", [GPU, DEVICE_CLASS + "gpu.example.com"])
def test_k207_the_reason_names_the_device_class_and_the_default_scheduler(resource: str) -> None:
    server = Server()
    assert told(resource, server) == (
        f"leave the pod to the default scheduler, which must run it: no node offers {resource}, "
        "DeviceClass gpu.example.com serves it."
    )
    asked = ["/apis/resource.k8s.io/v1/deviceclasses"] if resource == GPU else []
    assert server.asked == asked, "the other one names its class"


def test_k207_a_gang_without_placeholders_is_told_too() -> None:
    world = cluster(values={"service.gangScaleUp": "false"})
    groups = [gang("w", 2, minResource={GPU: "1"})]
    pod = world.add_pod("a", "app", group="w", groups=groups, overhead={GPU: "1"})
    world.run(5)
    assert world.placeholders == []
    text = explained(world, pod, Server())
    assert text is not None and "DeviceClass gpu.example.com serves it." in text
    assert explained(world, pod, Server(404)) is None, "the condition says what the nodes lack"


@pytest.mark.parametrize("answer", [{"items": []}, 403, 404, NoAnswer, {"items": 1}])
def test_k207_a_resource_that_no_device_class_is_known_to_serve_needs_a_node(answer: Any) -> None:
    assert told(GPU, Server(answer)).startswith("add a node with")


def test_k207_a_resource_that_nodes_offer_is_not_asked_about() -> None:
    server = Server()
    assert "default scheduler" not in told(GPU, server, offered=True)
    assert server.asked == []


def test_k207_device_classes_are_listed_once_a_minute() -> None:
    server = Server()
    classes = DeviceClasses(server, lambda: server.now)

    def serving(resource: str = GPU) -> str:
        return asyncio.run(classes.serving(resource))

    assert (serving(), serving("other"), len(server.asked)) == ("gpu.example.com", "", 1)
    server.answer = NoAnswer
    server.now = 60 * SECOND
    assert (serving(), len(server.asked)) == ("gpu.example.com", 2), "what was known stays known"
    server.answer = 404
    server.now = 120 * SECOND
    assert (serving(), len(server.asked)) == ("", 3)


async def test_k207_the_condition_of_a_waiting_pod_says_it() -> None:
    pod = ours("one")
    pod["spec"]["containers"][0]["resources"]["requests"][GPU] = "1"

    def prepare(api: FakeApi) -> None:
        api.others["deviceclasses"] = CLASSES["items"]

    async with at_work(pod, prepare=prepare, explains=True) as found:
        await found.until(
            lambda: any(
                "DeviceClass gpu.example.com serves it" in json.dumps(each)
                for each in found.api.made("PATCH", "/one/status")
            )
        )
