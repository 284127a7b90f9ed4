"""mypy is in the environment ``typing``, and in those for developing."""

from importlib.util import find_spec

TESTS = ["test_typing_lifecycles.py", "test_typing_tutorial.py"]
collect_ignore = [] if find_spec("mypy") else TESTS
