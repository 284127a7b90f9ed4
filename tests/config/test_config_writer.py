"""What is written as YAML is read as the same document, and looks as a person would write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.core.config.reader import Mapping, Node, Scalar, Sequence, read
from quadriga.core.config.writer import write


def test_mappings_and_lists_are_blocks() -> None:
    document = {
        "partitions": [
            {"name": "default", "queues": [{"name": "root", "limits": []}], "preemption": {}},
            {"name": "gpu", "weights": {"vcore": 2.5, "memory": 0}, "enabled": True},
        ],
        "extra": [["a", "b"], [["c"]]],
    }
    assert (
        write(document)
        == """\
partitions:
- name: default
  queues:
  - name: root
    limits: []
  preemption: {}
- name: gpu
  weights:
    vcore: 2.5
    memory: 0
  enabled: true
extra:
- - a
  - b
- - - c
"""
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain text", "plain text"),
        ("user1,user2 group", "user1,user2 group"),
        ("yes", "'yes'"),  # a text since YAML 1.2, a boolean before
        ("500m", "500m"),
        ("http://x#y", "http://x#y"),
        ("", "''"),
        ("*", "'*'"),
        ("true", "'true'"),
        ("~", "'~'"),
        ("0x1F", "'0x1F'"),
        ("-1_000", "'-1_000'"),
        ("1e3", "'1e3'"),
        ("0o17", "'0o17'"),
        (".inf", "'.inf'"),
        ("2026-01-31", "'2026-01-31'"),
        ("<<", "'<<'"),
        ("- a", "'- a'"),
        ("a: b", "'a: b'"),
        ("a #b", "'a #b'"),
        (" a", "' a'"),
        ("...", "'...'"),
        ("it's", "it's"),
        ("'a'", "'''a'''"),
        ("a\tb", '"a\\tb"'),
        ("a\nb", "'a\n\n  b'"),
        ("\x07\x1f\u2028\ufeff\uffff", '"\\a\\x1F\\L\\uFEFF\\uFFFF"'),
        ("\u00e9\U0001f600", '"\u00e9\\U0001F600"'),
    ],
)
def test_a_text_is_quoted_where_it_would_be_something_else(text: str, written: str) -> None:
    assert write({"key": text}) == f"key: {written}\n"


def test_a_long_text_is_wrapped_at_its_spaces() -> None:
    words = " ".join(["word"] * 40)
    for text in (words, f"# {words}"):
        written = write({"label": text})
        assert max(map(len, written.splitlines())) <= 85
        assert len(written.splitlines()) == 3
        node, _ = read(written)
        assert plain(node) == {"label": text}
        assert len(write({"label": text}, width=4096).splitlines()) == 1


def plain(node: Node | None) -> object:
    match node:
        case Mapping(entries=entries):
            return {key: plain(value) for key, value in entries.items()}
        case Sequence(items=items):
            return [plain(item) for item in items]
        case Scalar(text=text, quoted=quoted):
            return text if quoted or not node.null else None
    return None


def as_texts(value: object) -> object:
    match value:
        case dict():
            return {key: as_texts(below) for key, below in value.items()}
        case list():
            return [as_texts(item) for item in value]
        case bool():
            return str(value).lower()
    return str(value)


TEXTS = st.text(max_size=20) | st.text(alphabet=" '\"#:-?~0\n\u2028wo", max_size=200)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
DOCUMENTS = st.dictionaries(
    TEXTS,
    st.recursive(
        TEXTS | NUMBERS,
        lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXTS, below, max_size=3),
        max_leaves=10,
    ),
    max_size=4,
)


@given(DOCUMENTS, st.sampled_from((10, 80, 4096)))
def test_any_document_is_read_as_it_was_written(document: dict[str, object], width: int) -> None:
    node, repeated = read(write(document, width))
    assert plain(node) == as_texts(document)
    assert not repeated
