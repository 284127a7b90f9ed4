"""What is written as YAML is read as the same document and as a person would write it; what is shown loads (2.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadriga.core.config import ConfigError, load
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


def test_the_settings_of_a_shown_configuration_are_kept_apart_and_are_a_warning() -> None:
    configuration = load("partitions: [{queues: []}]\nextra:\n  a: 1h\n  b: 'true'\n")
    assert configuration.extra == {"a": "1h", "b": "true"}
    (warning,) = configuration.warnings
    assert (warning.path, warning.line) == ("extra", 3)
    assert not load("partitions: [{queues: []}]\nextra: {}\n").warnings
    with pytest.raises(ConfigError) as caught:
        load("extra: {a: [1]}")
    assert [problem.path for problem in caught.value.problems] == ["extra.a"]


@pytest.mark.parametrize(
    "line", ["checksum: {}", "checksum: '{}'", '"checksum": "{}"', '"checksum":"{}"']
)
def test_a_checksum_in_the_text_does_not_count_in_any_form(line: str) -> None:
    def text(value: str) -> str:
        return f"{{partitions: [{{queues: []}}],\n{line.format(value)}}}\n"

    assert load(text("A" * 64)).checksum == load(text("b" * 64)).checksum
    assert load(text("A" * 63)).checksum != load(text("B" * 63)).checksum


def test_a_character_that_json_escapes_in_two_halves_is_one() -> None:
    pair = r'"\ud83d\ude00"'
    configuration = load(f"partitions: [{{queues: [{{name: a, properties: {{{pair}: {pair}}}}}]}}]")
    (child,) = configuration.partitions[0].root.children
    assert child.raw_properties == {"\U0001f600": "\U0001f600"}
    with pytest.raises(ConfigError, match="half a character"):
        load('partitions: [{queues: [{name: a, properties: {a: "\\ud83d"}}]}]')
