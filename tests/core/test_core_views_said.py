"""What a resource manager says of itself is somebody else's text: it spoils no state dump (2.13, I4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quadriga.core.views.dump import as_text, diagnostics_of


class Says:
    def __init__(self, text: str) -> None:
        self._text = text

    def get_state_dump(self) -> str:
        return self._text


def said(text: str) -> dict[str, Any]:
    found = diagnostics_of({"rm": Says(text)})
    assert json.loads(as_text(found)) == found
    return found


@pytest.mark.parametrize(
    "text",
    [
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": ' * 90_000,
        '{"a": ' * 500 + "1" + "}" * 500,
        '{"a": ' * 101 + "[]" + "}" * 101,
        "[]",
        "1" * 10_000,
        "",
    ],
)
def test_what_is_no_plain_json_is_an_error_instead(text: str) -> None:
    assert list(said(text)) == ["error"]


def test_what_is_stays() -> None:
    assert said('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}
    assert "error" not in said('{"a": ' * 50 + "1" + "}" * 50)
