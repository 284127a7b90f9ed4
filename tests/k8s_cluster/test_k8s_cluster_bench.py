"""The measurements on a real control plane, with a few pods: every scheduler binds them all."""

import os

import pytest
from control_plane import Missing, programs

from bench._kubernetes import moments
from bench._kubernetes.plane import Pods
from bench._kubernetes.runs import bound_by_stock, bound_by_us, bound_raw, new_plane
from bench._kubernetes.shapes import SHAPES, add_nodes, in_turn


@pytest.fixture(autouse=True)
def built() -> None:
    try:
        programs()
    except Missing as missing:
        if os.environ.get("QUADRIGA_REQUIRE_CLUSTER") == "1":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def test_the_raw_loop_and_both_schedulers_bind_all_pods() -> None:
    for found in (
        bound_raw(5, 40),
        bound_by_stock(5, Pods(40)),
        bound_by_us(5, Pods(40, 3), arriving=True),
    ):
        assert found.pods == 40
        assert found.rate > 0
        assert min(found.busy, found.server) > 0
    # The watch may tell of a bind before its answer does.
    assert 0 < found.answers["POST binding 201"] <= 40


def test_both_schedulers_bind_the_pods_of_a_shape_one_after_the_other() -> None:
    nodes = 50
    shapes = [each for each in SHAPES if each.settings or not each.fits_before]
    assert len(shapes) == 2
    with new_plane() as plane:
        add_nodes(plane, nodes)
        for turn, shape in enumerate(shapes):
            for found in in_turn(plane, shape, nodes, turn):
                assert min(found.rate, found.busy) > 0
            stock, ours = (plane.observer.bound[f"c{2 * turn + at}"] for at in (0, 1))
            assert stock == ours > 0
            # Nothing that fits on no node is bound.
            assert shape.fits_before or not plane.observer.bound[f"b{2 * turn + 1}"]


def test_k196_a_gang_is_bound_whole() -> None:
    assert 0 < moments.gang(5, 10) < 60


def test_k197_a_restart_is_measured() -> None:
    found = moments.restarted(5, 100, applications=4)
    assert 0 < found.synced <= found.ready
    assert 0 < found.memory <= found.most


def test_k198_all_changes_are_heard() -> None:
    found = moments.changes(5, 50, 100.0, 1.0)
    assert 0 < found.rate <= 101
    assert found.busy >= 0
