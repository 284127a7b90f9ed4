"""Work for one object that grows with the cluster is done in slices, and others have their turn (Q16)."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from decoded import decoded
from small_cluster import SmallCluster

from quadriga.k8s.cluster import cache as caches
from quadriga.k8s.cluster import selections
from quadriga.k8s.cluster.domains import CountedPods
from quadriga.k8s.objects import Pod
from quadriga.k8s.transport import listing
from quadriga.k8s.transport import reflector as reflectors
from quadriga.k8s.transport.reflector import Watching
from quadriga.k8s.tuning import TUNING
from tests.k8s.fake_api import pod
from tests.k8s.transport.test_k8s_reflector import reflector

# -- terms that are new ------------------------------------------------------------------------

SLICE, PODS, NODES = 50, 1_000, 20


class Work:
    """How often pods were looked at or counted since the last reading."""

    def __init__(self) -> None:
        self.done = 0

    def take(self) -> int:
        done, self.done = self.done, 0
        return done


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    found = Work()

    def counted(method: Any) -> Any:
        def call(*arguments: Any) -> Any:
            found.done += 1
            return method(*arguments)

        return call

    for module in (caches, selections):
        monkeypatch.setattr(module, "TUNING", replace(TUNING, cluster_slice=SLICE))
    for kind, name in (
        (selections.Selections, "profile"),
        (selections.Selection, "_matches"),
        (selections.Selections, "_add_profile"),
        (CountedPods, "add"),
    ):
        monkeypatch.setattr(kind, name, counted(getattr(kind, name)))
    return found


@pytest.fixture
def cluster() -> SmallCluster:
    """Each pod has labels of its own, as those of a StatefulSet: no two can be counted together."""
    made = SmallCluster(**{f"n{number}": {"zone": f"z{number % 3}"} for number in range(NODES)})
    made.namespace("team")
    made.namespace("other", kind="shared")
    for number in range(PODS):
        labels = {"pod": f"p{number}", "app": f"a{number % 7}"}
        where = ("team", "other")[number % 2]
        made.pod(f"p{number}", f"n{number % NODES}", namespace=where, labels=labels)
    return made


def term(key: str, value: str, **more: Any) -> dict[str, Any]:
    requirement = {"key": key, "operator": "NotIn", "values": [value, "x"]}
    return {"topologyKey": "zone", "labelSelector": {"matchExpressions": [requirement]}, **more}


EVERYWHERE: dict[str, Any] = {"namespaceSelector": {}}
TERMS = {
    "two about all namespaces": [term("pod", "p1", **EVERYWHERE), term("app", "1", **EVERYWHERE)],
    "eight about its own": [term(key, str(n)) for n in range(4) for key in ("pod", "app")],
}


def asking(terms: list[dict[str, Any]], name: str = "q") -> Pod:
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    metadata = {"name": name, "uid": name, "namespace": "team", "labels": {"app": "a1"}}
    spec = {"containers": [{"name": "main"}], "affinity": affinity}
    return decoded(Pod, {"metadata": metadata, "spec": spec})


def slices_of(cluster: SmallCluster, found: Pod, work: Work) -> Iterator[int]:
    work.take()
    for _ in cluster.cache.preparing(found):
        yield work.take()
    yield work.take()


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)
def test_q16_terms_that_no_pod_had_are_counted_in_slices(
    cluster: SmallCluster, work: Work, terms: list[dict[str, Any]]
) -> None:
    found = asking(terms)
    done = list(slices_of(cluster, found, work))
    assert sum(done) >= PODS
    assert max(done) <= 3 * SLICE, "each pod is looked at, matched and counted"
    cluster.cache.set_pod(found)
    assert work.take() < SLICE, "nothing is left for the one step that has no slices"
    assert cluster.allows("q").split() == sorted(f"n{number}" for number in range(NODES))
    assert list(slices_of(cluster, asking(terms, "twin"), work)) == [0], "it is known by now"
    plain = decoded(Pod, {"metadata": {"name": "plain", "uid": "plain", "namespace": "team"}})
    assert list(slices_of(cluster, plain, work)) == [0]


def test_q16_what_was_counted_for_nothing_is_dropped(cluster: SmallCluster, work: Work) -> None:
    before = len(cluster.cache._selections._selections)
    list(slices_of(cluster, asking(TERMS["eight about its own"]), work))
    assert len(cluster.cache._selections._selections) > before
    cluster.pod("another")
    assert len(cluster.cache._selections._selections) == before


async def test_q16_a_list_is_decoded_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, seen_at = 0, []

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def share(found: Pod) -> None:
        seen_at.append(turns)

    monkeypatch.setitem(listing._SHARE, Pod, share)
    monkeypatch.setattr(reflectors, "TUNING", replace(TUNING, decoded_slice=2))
    counting = asyncio.create_task(count())
    async with reflector(*(pod(f"p{n}") for n in range(9))) as seen:
        await seen.until(seen.watches)
    counting.cancel()
    assert max(map(seen_at.count, seen_at)) == 2, "the loop had other work after every two of them"


async def test_q16_large_objects_are_listed_in_smaller_pages() -> None:
    class Small(Watching):
        page, page_bytes = 8, 2_000

    large = [pod(f"p{n}", annotations={"text": "x" * 500}) for n in range(12)]
    async with reflector(*large, watching=Small) as seen:
        await seen.until(seen.watches)
        first, second, third = seen.queries()[:3]
        assert first == "limit=8"
        assert second == "limit=2&continue=8" and third == "limit=2&continue=10"
        assert seen.reflector.known == 12


async def test_q16_an_empty_list_says_nothing_about_sizes() -> None:
    async with reflector(watching=Watching()) as seen:
        await seen.until(seen.watches)
        assert seen.reflector._limit == Watching.page
