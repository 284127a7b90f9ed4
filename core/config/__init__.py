"""The queue configuration: YAML text in, checked data out (2.2).

`load` parses and checks a text. It reads no file and no clock, and reports all
problems of the text at once, each with its path, line and reason::

    partitions[0].queues[0].queues[1].resources.max (line 12): max is larger ...
"""

# Not compiled: it does not run for every ask.

from __future__ import annotations

import hashlib
import re
from typing import Final

from quadriga.core.config.acl import ACL, AclError
from quadriga.core.config.document import as_document, partition_document
from quadriga.core.config.durations import DurationError, parse_duration, render_duration
from quadriga.core.config.location import MAX_PROBLEMS, ConfigError, Findings, Location, Problem
from quadriga.core.config.partitions import read_partitions
from quadriga.core.config.properties import SORT_POLICIES, Properties, inherit, parse_properties
from quadriga.core.config.quantities import QuantityError, parse_quantity
from quadriga.core.config.queues import QUEUE_NAME
from quadriga.core.config.reader import ReadError, read
from quadriga.core.config.tree import (
    DEFAULT_NODE_SORT_POLICY,
    NODE_SORT_POLICIES,
    ChildTemplate,
    Configuration,
    DeviceConfig,
    LimitConfig,
    PartitionConfig,
    PlacementFilter,
    PlacementRule,
    QueueConfig,
)

__all__ = [
    "ACL",
    "DEFAULT_CONFIGURATION",
    "DEFAULT_NODE_SORT_POLICY",
    "MAX_PROBLEMS",
    "NODE_SORT_POLICIES",
    "QUEUE_NAME",
    "SORT_POLICIES",
    "AclError",
    "ChildTemplate",
    "ConfigError",
    "Configuration",
    "DeviceConfig",
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
"""The configuration that applies if none is supplied (2.2)."""

_CHECKSUM_LINE: Final = re.compile(
    r"""checksum: [0-9a-fA-F]{64}|(["']?)checksum\1\s*:\s*(["'])[0-9a-fA-F]{64}\2"""
)
"""A checksum as YuniKorn writes it, or quoted as in JSON."""


def load(text: str, *, node_sort_policy: str = DEFAULT_NODE_SORT_POLICY) -> Configuration:
    """Return the configuration that `text` describes. `node_sort_policy` is the policy of partitions
    that name none.

    Raises `ConfigError`, and nothing else, with the first `MAX_PROBLEMS` problems in
    the order of their lines and the number of the others. An empty text is a
    configuration without partitions; the caller decides whether to use
    `DEFAULT_CONFIGURATION` instead.

    The keys `checksum` and `extra` are accepted because a running configuration is
    shown with them (2.14), and what is shown can be loaded again.
    """
    findings = Findings()
    try:
        node, repeated = read(text)
    except ReadError as error:
        findings.problem(error.path, error.reason, error.line)
        raise ConfigError(findings.problems) from None
    for twice in repeated:
        findings.problem(twice.path, twice.reason, twice.line)
    fields = Location(node, (), findings).fields("partitions", "checksum", "extra")
    fields["checksum"].text()
    extra = fields["extra"].text_map()
    if extra:
        fields["extra"].warning(
            "settings of a resource manager have no effect in a queue configuration file"
        )
    partitions = read_partitions(fields["partitions"], node_sort_policy)
    problems, warnings = (
        sorted(found, key=lambda problem: problem.line)
        for found in (findings.problems, findings.warnings)
    )
    if problems:
        raise ConfigError(problems, warnings, findings.more_problems)
    return Configuration(partitions, checksum(text), tuple(warnings), extra)


def checksum(text: str) -> str:
    """Return the SHA-256 of `text` without any checksum in it, in upper case hexadecimal.

    A configuration with the checksum of the running configuration changes nothing
    (2.2).
    """
    plain = _CHECKSUM_LINE.sub("", text)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest().upper()
