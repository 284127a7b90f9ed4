"""Names that the resource manager (RM) and the scheduler agree on (I34), and tag keys (I35).

The names of the specification come first, grouped as there. A *domain* and a *group* keep their
slash, so that the parts of a tag key put side by side are the key.
"""

from typing import NamedTuple

# Attributes of a node: keys of NodeInfo.attributes.

ARCH = "si/arch"
"""Processor architecture, such as ``amd64``."""
HOST_NAME = "si/hostname"
"""Host name."""
RACK_NAME = "si/rackname"
"""Rack in which the node stands."""
OS = "si/os"
"""Operating system, such as ``linux``."""
INSTANCE_TYPE = "si/instance-type"
"""Machine type of the provider; usage is summed up by it."""
FAILURE_DOMAIN_ZONE = "si/zone"
"""Zone that fails as one."""
FAILURE_DOMAIN_REGION = "si/region"
"""Region of the zone."""
LOCAL_IMAGES = "si/local-images"
"""Container images which the node holds already."""
NODE_PARTITION = "si/node-partition"
"""Partition which the node joins, by the name the RM knows."""

# Attributes of an allocation.

APPLICATION_ID = "si/application-id"
"""Application of an allocation."""
CONTAINER_IMAGE = "si/container-image"
"""Container image to run."""
CONTAINER_PORTS = "si/container-ports"
"""Ports which the container opens."""

# Parts of the tag keys of an allocation or an ask (I35).

DOMAIN_K8S = "kubernetes.io/"
"""Domain of what Kubernetes says of a pod."""
DOMAIN_YUNIKORN = "yunikorn.apache.org/"
"""Domain of what is said to the scheduler."""

GROUP_META = "meta/"
"""Group of a pod's metadata."""
GROUP_LABEL = "label/"
"""Group of a pod's labels."""
GROUP_ANNOTATION = "annotation/"
"""Group of a pod's annotations."""

KEY_POD_NAME = "podName"
"""Name of the pod."""
KEY_NAMESPACE = "namespace"
"""Namespace of the pod."""
KEY_REQUIRED_NODE = "requiredNode"
"""The only node that will do, by its node ID."""
KEY_ALLOW_PREEMPTION = "allowPreemption"
"""``true`` or ``false``: may the pod be preempted (X21)?"""

CREATION_TIME = "creationTime"
"""When the RM made the application or the pod, in s since the Unix epoch."""

# Resource types, tags of an application, and more node attributes.

MEMORY = "memory"
"""Resource type memory, in bytes."""
CPU = "vcore"
"""Resource type processor, in thousandths of a core."""
APP_TAG_NAMESPACE_RESOURCE_QUOTA = "namespace.resourcequota"
"""JSON of the resource limit for the queue made for this application."""
APP_TAG_NAMESPACE_RESOURCE_GUARANTEED = "namespace.resourceguaranteed"
"""JSON of the guaranteed resource for the queue made for this application."""
APP_TAG_STATE_AWARE_DISABLE = "application.stateaware.disable"
"""``true``: the application does not enter Starting (X15)."""
NODE_READY_ATTRIBUTE = "ready"
"""``true`` or ``false``: the node's own word on whether it works (X19)."""

# Later than the specification, and used by current RMs.

APP_TAG_CREATE_FORCE = "application.create.force"
"""``true``: take the application in, if need be in the recovery queue (SI 1.4)."""
APP_TAG_NAMESPACE_RESOURCE_MAX_APPS = "namespace.resourcemaxapps"
"""Limit of running applications for the queue made for this application (SI 1.5)."""
DOMAIN_YUNIKORN_INTERNAL = "internal.yunikorn.apache.org/"
"""Domain of what RM and scheduler say to each other and to nobody else."""
KEY_FOREIGN = "foreign"
"""The allocation belongs to somebody else and only takes up room (X19); with one of these values."""
FOREIGN_STATIC = "static"
"""It belongs to the node itself and goes with it."""
FOREIGN_DEFAULT = "default"
"""It is a pod like any other, placed by another scheduler."""

# Whole tag keys which the scheduler reads.

TAG_CREATION_TIME = DOMAIN_YUNIKORN + CREATION_TIME
"""Of an application it shortens the placeholder timeout, of an ask it gives the age."""
TAG_REQUIRED_NODE = DOMAIN_YUNIKORN + KEY_REQUIRED_NODE
"""Of an ask: the node ID of the only node that will do."""
TAG_ALLOW_PREEMPTION = DOMAIN_YUNIKORN + KEY_ALLOW_PREEMPTION
"""Of an ask without a PreemptionPolicy: stands for allowPreemptSelf (X21)."""
TAG_FOREIGN = DOMAIN_YUNIKORN_INTERNAL + KEY_FOREIGN
"""Of an allocation that nobody asked for here (X19); current RMs leave the domain out."""


class TagKey(NamedTuple):
    """A tag key in its parts (I35): ``kubernetes.io/`` ``meta/`` ``namespace``.

    `group` is empty when there is none. `str` gives the text that `parse_tag_key` reads.
    """

    domain: str
    group: str
    key: str

    def __str__(self) -> str:
        return "".join(self)


def parse_tag_key(text: str) -> TagKey:
    """The parts of a tag key: domain, group (may be missing) and key (I35).

    What follows the second slash is the key, slashes and all: label names contain them
    (``kubernetes.io/label/app.kubernetes.io/name``). Raises ValueError for a text without a
    domain, or with an empty part.
    """
    parts = text.split("/", 2)
    if len(parts) < 2 or not all(parts):
        raise ValueError(f"tag key {text!r} is not domain/[group/]key")
    domain, *group, key = parts
    return TagKey(f"{domain}/", f"{group[0]}/" if group else "", key)


def build_tag_key(domain: str, key: str, *, group: str = "") -> str:
    """A tag key of its parts; `domain` and `group` with or without their slash (I35).

    Raises ValueError when the parts would not be read back as they are: an empty domain or key, a
    slash within domain or group, or a slash in the key where there is no group.
    """
    parts = [domain.removesuffix("/"), key]
    if group:
        parts.insert(1, group.removesuffix("/"))
    text = "/".join(parts)
    wanted = TagKey(f"{parts[0]}/", f"{parts[1]}/" if group else "", key)
    if parse_tag_key(text) != wanted:
        raise ValueError(f"domain {domain!r}, group {group!r}, key {key!r}: not a tag key")
    return text
