"""Configurations that somebody sends to be checked: what that may cost, and who may have it done."""

import pytest
from on_a_port import PATIENCE, Client

from quadriga.core.config import MAX_PROBLEMS
from quadriga.web.responses import Refusal
from quadriga.web.rest import validation
from quadriga.web.rest.configuration import MAX_BYTES

CHECK = "/ws/v1/validate-conf"
VALID = "partitions: [{name: default, queues: [{name: root}]}]\n"


async def test_2_14_of_many_problems_a_hundred_are_told_and_the_others_counted(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation.verdict, "__defaults__", (PATIENCE,))
    wrong = "".join(f"k{number}: 1\n" for number in range(1_000))
    for text in (wrong, wrong + "#" * validation.SHORT):  # here, and in a process of its own
        found = (await client.post(CHECK, content=text)).json()
        assert not found["allowed"]
        lines = found["reason"].splitlines()
        assert lines[0] == "the queue configuration has 1000 problems:"
        assert len(lines) == 1 + MAX_PROBLEMS + 1
        assert "k0 (line 1): unknown key" in lines[1]
        assert lines[-1] == "  and 900 more"


async def test_2_14_the_answer_is_short_however_long_what_is_wrong_is(client: Client) -> None:
    for text in (f"{'k' * 15_000}: 1", f"partitions: [{'x' * 15_000}]", f"!{'t' * 900} x"):
        answer = await client.post(CHECK, content=text)
        assert not answer.json()["allowed"]
        assert len(answer.content) < 5_000


async def test_2_14_a_long_check_has_a_process_of_its_own_and_is_given_up_in_the_end() -> None:
    valid = VALID + "#" * validation.SHORT
    assert await validation.verdict(valid, PATIENCE) == {"allowed": True, "reason": ""}
    with pytest.raises(Refusal, match="takes longer than 0 seconds") as refused:
        await validation.verdict("a,\n" * (MAX_BYTES // 3), patience=0)
    assert refused.value.status == 503


async def test_pages_of_another_origin_have_nothing_checked(remote: Client) -> None:
    own = remote.base_url.netloc.decode()
    for origin in ("http://bad.example", "null", "http://[", f"http://user@{own}", f"http://{own}"):
        answer = await remote.post(CHECK, content=VALID, headers={"Origin": origin})
        assert answer.status_code == (200 if origin == f"http://{own}" else 403), origin
    assert (await remote.post(CHECK, content=VALID)).json()["allowed"]
