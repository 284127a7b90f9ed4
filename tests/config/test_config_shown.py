"""A running configuration that was shown can be loaded as it is (2.2, 2.14)."""

import pytest

from quadriga.core.config import ConfigError, load


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
