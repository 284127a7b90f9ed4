"""What waits for a resource manager, and what was sent lately."""

from quadriga.si.server.delivery.replay_buffer import OVERHEAD, ReplayBuffer


def test_a_box_joins_what_has_the_same_list_and_nothing_else() -> None:
    box = ReplayBuffer(batch_bytes=3, replay_bytes=1000)
    messages = ((1, b"a"), (1, b"b"), (2, b"c"), (1, b"d"), (0, b"e"), (0, b"f"))
    alone = [box.put(message, field) for field, message in messages]
    assert alone == [True, False, True, True, True, True]
    assert box.bytes == 6 * (1 + OVERHEAD)
    assert [box.take() for _ in range(6)] == [b"ab", b"c", b"d", b"e", b"f", None]
    assert (box.bytes, box.written) == (0, 5)
    for _ in range(5):  # together they would be beyond the limit
        box.put(b"xx", 1)
    assert [box.take() for _ in range(6)] == [b"xx"] * 5 + [None]
    assert box.put(b"a", 1)
    assert box.put(b"b", 1, anew=True)
    assert box.take() == b"a"


def test_a_box_remembers_so_much() -> None:
    box = ReplayBuffer(batch_bytes=1, replay_bytes=3)
    for letter in b"abcde":
        box.put(bytes([letter]))
        box.take()
    assert not box.rewind(1)
    assert not box.rewind(6)
    assert box.rewind(3)
    assert box.bytes == 2 * (1 + OVERHEAD)
    assert [box.take(), box.take(), box.take()] == [b"d", b"e", None]
    assert box.written == 5
