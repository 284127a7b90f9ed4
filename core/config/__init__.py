"""The queue configuration: YAML text in, checked data out (2.2).

`load` is all there is to call. It reads no file and no clock, and it shows
every problem of a text at once, each with its path, line and reason::

    partitions[0].queues[0].queues[1].resources.max (line 12): max is larger ...
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from quadriga.core.config.acl import ACL, AclError, parse_acl
from quadriga.core.config.document import as_document, partition_document
from quadriga.core.config.durations import DurationError, parse_duration, render_duration
from quadriga.core.config.partitions import read_partitions
from quadriga.core.config.place import MOST_PROBLEMS, ConfigError, Findings, Place, Problem
from quadriga.core.config.properties import Properties, inherit, parse_properties
from quadriga.core.config.quantities import QuantityError, parse_quantity
from quadriga.core.config.queues import QUEUE_NAME
from quadriga.core.config.reader import ReadError, read
from quadriga.core.config.tree import (
    ChildTemplate,
    Configuration,
    LimitConfig,
    PartitionConfig,
    PlacementFilter,
    PlacementRule,
    QueueConfig,
)

__all__ = [
    "ACL",
    "DEFAULT_CONFIGURATION",
    "MOST_PROBLEMS",
    "QUEUE_NAME",
    "AclError",
    "ChildTemplate",
    "ConfigError",
    "Configuration",
    "DurationError",
    "LimitConfig",
    "PartitionConfig",
    "PlacementFilter",
    "PlacementRule",
    "Problem",
    "Properties",
    "QuantityError",
    "QueueConfig",
    "as_document",
    "checksum",
    "inherit",
    "load",
    "parse_acl",
    "parse_duration",
    "parse_properties",
    "parse_quantity",
    "partition_document",
    "render_duration",
]

DEFAULT_CONFIGURATION: Final = """\
partitions:
  - name: default
    placementrules:
      - name: tag
        value: namespace
        create: true
    queues:
      - name: root
        submitacl: '*'
"""
"""The text to use when none is supplied (2.2)."""

#: as YuniKorn writes it, and as in JSON
_CHECKSUM_LINE: Final = re.compile(
    r"""checksum: [0-9a-fA-F]{64}|(["']?)checksum\1\s*:\s*(["'])[0-9a-fA-F]{64}\2"""
)


def load(text: str) -> Configuration:
    """The configuration that `text` describes.

    Raises `ConfigError`, and nothing else, with all problems in the order of
    their lines; of more than `MOST_PROBLEMS` with those found first and the
    number of the others. An empty text is a configuration without partitions;
    whether `DEFAULT_CONFIGURATION` should stand in for it is for the caller to
    say.

    `checksum` and `extra` are there because a running configuration is shown
    with them (2.14): it can be loaded again as it is.
    """
    findings = Findings()
    try:
        node, repeated = read(text)
    except ReadError as error:
        findings.problem(error.path, error.reason, error.line)
        raise ConfigError(findings.problems) from None
    for twice in repeated:
        findings.problem(twice.path, twice.reason, twice.line)
    fields = Place(node, (), findings).fields("partitions", "checksum", "extra")
    fields["checksum"].text()
    extra = fields["extra"].text_map()
    if extra:
        fields["extra"].warning("settings of a resource manager mean nothing in a file of queues")
    partitions = read_partitions(fields["partitions"])
    problems, warnings = (
        sorted(found, key=lambda problem: problem.line)
        for found in (findings.problems, findings.warnings)
    )
    if problems:
        raise ConfigError(problems, warnings, findings.more_problems)
    return Configuration(partitions, checksum(text), tuple(warnings), extra)


def checksum(text: str) -> str:
    """The SHA-256 of `text` without any checksum in it, in upper case hexadecimal.

    A configuration whose checksum is that of the running one changes nothing
    (2.2).
    """
    plain = _CHECKSUM_LINE.sub("", text)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest().upper()
