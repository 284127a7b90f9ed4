"""What a text may be before it is a configuration: strict YAML, within bounds."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from quadriga.core.config import ConfigError, load, reader
from quadriga.core.config.reader import MAX_BYTES, Mapping, read

ROOT = "partitions: [{queues: [{name: root, %s}]}]"


def refused(text: str) -> list[tuple[str, str]]:
    with pytest.raises(ConfigError) as caught:
        load(text)
    return [(problem.path, problem.reason) for problem in caught.value.problems]


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "null", "partitions:", "{}"])
def test_a_text_that_says_nothing_has_no_partitions(text: str) -> None:
    assert load(text).partitions == ()


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ("partitions: *", "", "not YAML"),
        ("a: 'b", "", "not YAML"),
        ('"\\UFFFFFFFF"', "", "not YAML"),
        ("\x00", "", "not YAML"),
        ("partitions: []\n---\npartitions: []\n", "", "a second document"),
        ("partitions: *nowhere", "partitions", "nothing complete is anchored"),
        ("partitions: &a [*a]", "partitions[0]", "nothing complete is anchored"),
        ("partitions: !mine []", "partitions", "the tag '!mine'"),
        ("!" * 3_000_000, "", "exclamation marks"),
        ("[a]: b", "", "a key must be a text"),
        ("&a [x]: 1", "", "a key must be a text"),
        ("partitions:\n- {<<: text}", "partitions[0]", "only mappings can be merged"),
        ("partitions: " + "[" * 300, "partitions" + "[0]" * 199, "levels deep"),
        ("[]", "", "a mapping is expected, not a list"),
        ("text", "", "a mapping is expected, not the text 'text'"),
        ("partitions: {}", "partitions", "a list is expected, not a mapping"),
        ("partitions: [text]", "partitions[0]", "a mapping is expected, not the text 'text'"),
        ("pools: []", "pools", "unknown key"),
        ("#" * (MAX_BYTES + 1), "", "longer than"),
        ("#" + "\u00e9" * (MAX_BYTES // 2), "", "longer than"),
    ],
)
def test_unreadable_texts(text: str, path: str, reason: str) -> None:
    ((found_path, found_reason),) = refused(text)
    assert found_path == path
    assert reason in found_reason


UNREADABLE = [
    "partitions: *",
    "partitions:\n- name: [a",
    "partitions:\n- name: a\n queues: []",
    "a: b\nc",
    '"\\UFFFFFFFF"',
    "a: \x00",
    "a: \ud800",
    "%YAML 2.0\n---\na: b",
    "[" * 300,
    "a: !mine b",
    "a: 1\n---\nb: 2",
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_without_libyaml_problems_are_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = refused(text)
    monkeypatch.setattr(reader, "_FAST_PARSER", None)
    assert refused(text) == fast


@pytest.mark.parametrize("with_libyaml", [True, False])
def test_both_parsers_read_the_same(with_libyaml: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_libyaml:
        monkeypatch.setattr(reader, "_FAST_PARSER", None)
    text = """\
%YAML 1.2
---
partitions:
  - {name: &name "default", queues: [{name: root, submitacl: '*', queues: [
      {name: "caf\\u0065", properties: {"\\ud83d\\ude00": !!str yes}}, {name: *name}]}]}
...
"""
    (partition,) = load(text).partitions
    assert partition.name == "default"
    first, second = partition.root.children
    assert (first.name, first.raw_properties) == ("cafe", {"\U0001f600": "yes"})
    assert second.name == "default"


def test_libyaml_takes_tabs_between_tokens() -> None:
    pytest.importorskip("yaml.cyaml", reason="PyYAML was built without libyaml")
    assert load("partitions:\t# none\n").partitions == ()
    assert load("partitions:\t[]\t\n").partitions == ()


def test_a_key_written_twice_is_one_problem_among_others() -> None:
    problems = refused(ROOT % "parent: true, parent: false, maxapplications: -1")
    assert problems == [
        ("partitions[0].queues[0].parent", "this key is written twice"),
        (
            "partitions[0].queues[0].maxapplications",
            "a whole number, zero or more is expected, not the text '-1'",
        ),
    ]


def test_aliases_and_merge_keys_work() -> None:
    configuration = load(
        """
partitions:
- queues:
  - name: root
    queues:
    - &base
      name: a
      maxapplications: 3
      resources: &quota {max: {memory: 1G}}
    - {<<: *base, name: b, maxapplications: 4}
    - {name: c, resources: *quota}
    - {<<: [{name: d}, *base]}
"""
    )
    children = configuration.partitions[0].root.children
    assert [(child.name, child.max_applications) for child in children] == [
        ("a", 3),
        ("b", 4),
        ("c", 0),
        ("d", 3),
    ]
    assert all(child.max == {"memory": 10**9} for child in children)


def test_an_alias_bomb_is_refused_before_it_unfolds() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 12):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    ((path, reason),) = refused("\n".join(lines))
    assert path.startswith("a4")
    assert "aliases unfolded" in reason


def test_aliases_may_stand_for_as_much_as_a_text_that_is_written_out() -> None:
    def text(uses: int, comment: int) -> str:
        return f"a: &a [{'x, ' * 99}x]\nb: [{'*a, ' * uses}]\n#{'c' * comment}"

    node, _ = read(text(195, 0))
    assert isinstance(node, Mapping) and node.weight > 19_000
    ((_, reason),) = refused(text(205, 0))
    assert "more than 20000 values" in reason
    node, _ = read(text(205, 25_000))
    assert isinstance(node, Mapping) and node.weight > 20_000


def test_scalars_are_those_of_yaml_1_2() -> None:
    problems = refused(
        ROOT % "parent: yes, maxapplications: 1_000, queues: [{name: on, maxapplications: '5'}]"
    )
    assert {path for path, _ in problems} == {
        "partitions[0].queues[0].parent",
        "partitions[0].queues[0].maxapplications",
        "partitions[0].queues[0].queues[0].maxapplications",
    }
    root = load(ROOT % "maxapplications: 0x10, queues: [{name: on, maxapplications: 0o7}]")
    assert root.partitions[0].root.max_applications == 16
    assert root.partitions[0].root.children[0].name == "on"
    assert root.partitions[0].root.children[0].max_applications == 7


@pytest.mark.parametrize("number", ["18446744073709551616", "9" * 5000, "1.0", ".nan", "true"])
def test_counts_that_are_none(number: str) -> None:
    assert len(refused(ROOT % f"maxapplications: {number}")) == 1


KEYS = st.sampled_from(
    "partitions queues name parent resources max guaranteed limits users groups maxresources"
    " maxapplications placementrules filter type value create childtemplate properties submitacl"
    " adminacl nodesortpolicy resourceweights preemption enabled memory vcore checksum".split()
)
#: with the halves of surrogate pairs
ANY_CHARACTER = st.characters()
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(["root", "*", "default", "fixed", "root.a", "1G", "a b", "(", "[z-a]", "[[a]"]),
    st.text(ANY_CHARACTER, max_size=5),
)
TREES = st.recursive(
    SCALARS, lambda b: st.lists(b, max_size=3) | st.dictionaries(KEYS, b, max_size=5), max_leaves=15
)
QUEUES = st.recursive(
    st.dictionaries(KEYS, SCALARS, max_size=4),
    lambda below: (
        st.fixed_dictionaries({"name": SCALARS, "queues": st.lists(below, max_size=3)})
        | st.dictionaries(KEYS, TREES, max_size=4)
    ),
    max_leaves=6,
)
STRUCTURES = (
    TREES
    | st.lists(st.dictionaries(KEYS, TREES), max_size=2).map(lambda some: {"partitions": some})
    | st.lists(QUEUES, max_size=3).map(lambda some: {"partitions": [{"queues": some}]})
)
YAML = st.text(alphabet="partions:-queme{}[],&*!|>%@`'\"\\#?~<0 \n\t", max_size=200)


@given(st.text(ANY_CHARACTER) | YAML | STRUCTURES.map(yaml.safe_dump))
def test_any_text_is_a_configuration_or_a_config_error(text: str) -> None:
    try:
        load(text)
    except ConfigError as error:
        assert error.problems
        assert all(problem.reason and str(problem) in str(error) for problem in error.problems)
