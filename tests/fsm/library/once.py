"""A plugin of pytest: a test of the library runs once, although its class is imported by other modules of tests."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def is_imported(item: pytest.Item) -> bool:
        cls = getattr(item, "cls", None)
        return cls is not None and cls.__module__ != item.module.__name__  # type: ignore[attr-defined]

    again = [item for item in items if is_imported(item)]
    if again:
        config.hook.pytest_deselected(items=again)
        items[:] = [item for item in items if not is_imported(item)]
