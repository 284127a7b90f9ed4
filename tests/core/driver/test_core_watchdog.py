"""Q16: what takes the loop for more than a second is named once, while it lasts and afterwards."""

import logging

import pytest

from quadriga.core.driver.watchdog import Watchdog

SECOND = 1_000_000_000


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


def test_q16_what_took_over_a_second_is_named_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watchdog = Watchdog(clock, lambda thing: f"pod {thing}")
    watchdog.at("quick")
    clock.now += SECOND
    watchdog.at("slow")
    watchdog.detail = "ask 7"
    clock.now += 2 * SECOND
    watchdog.at("next")
    clock.now += 10
    watchdog.idle()
    clock.now += 100 * SECOND  # it waits
    watchdog.idle()
    assert caplog.messages == ["the loop spent 2.0 s on pod slow (last question: ask 7)"]
    assert (watchdog.count, watchdog.longest) == (1, 2 * SECOND)
    assert watchdog.busy() == 0
    assert watchdog.stuck(0) == ""


def test_q16_a_loop_that_hangs_is_named_by_another_thread(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watchdog = Watchdog(clock)
    watchdog.at("pod default/endless")
    clock.now += 3 * SECOND
    assert watchdog.stuck(5 * SECOND) == ""
    clock.now += 3 * SECOND
    with caplog.at_level(logging.ERROR):
        said = [watchdog.stuck(5 * SECOND) for _ in range(3)]
    assert said == ["its loop has been at pod default/endless for 6.0 s"] * 3
    assert caplog.messages == said[:1]
    assert watchdog.busy() == 6 * SECOND
