"""mypy is in the environment ``typing``, and in those for developing."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("mypy") else ["test_typing_lifecycles.py"]
