"""Documents as YAML text, which `quadriga.core.config.reader.read` reads back as it was.

A document consists of dictionaries, lists, texts, numbers and booleans, and keeps its order. A text that YAML
would read as something else is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

_Safe: Final[type[Any]] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Safe):  # type: ignore[misc]
    """The library's, which also quotes the numbers of YAML 1.2 that it does not know as such."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_float(self, data: float) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:float", str(data))


_Dumper.add_representer(float, _Dumper.represent_float)
_DIGITS: Final = list("-+0123456789")
_Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?0o[0-7_]+$"), _DIGITS)
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), _DIGITS
)


def write(document: Mapping[str, Any], width: int = 80) -> str:
    """The document as YAML. Lines with more than `width` columns are wrapped at spaces where they can be."""
    text: str = yaml.dump(
        document, Dumper=_Dumper, width=width, allow_unicode=True, sort_keys=False
    )
    return text
