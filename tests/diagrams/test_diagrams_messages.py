"""The page of messages is what the dispatcher's table says."""

from __future__ import annotations

from pathlib import Path

from quadriga.core.intake.dispatcher import NODE_ROUTES, ROUTES
from quadriga.diagrams.messages import messages_page, write_messages

PAGE = Path(__file__).parents[2] / "docs" / "messages.md"


def test_the_committed_page_is_up_to_date(tmp_path: Path) -> None:
    written = tmp_path / "messages.md"
    write_messages(written)
    stale = "the table has changed: run `python -m quadriga.diagrams --messages docs/messages.md`"
    assert PAGE.read_text(encoding="utf-8") == written.read_text(encoding="utf-8"), stale


def test_every_value_of_the_table_is_on_the_page() -> None:
    page = messages_page()
    for route in ROUTES:
        assert f"| `{route.message.__name__}` |" in page
        for triggers in route.concerns.values():
            assert f"| {', '.join(f'`{each}`' for each in triggers)} |" in page
        assert all(f"`{field}`" in page for field in route.response)
    assert page.count("\n| `") >= len(ROUTES) + len(NODE_ROUTES)
