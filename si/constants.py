"""Names that resource managers (RMs) and the scheduler share (I34), and tag keys (I35).

The names of the specification come first, in its groups. A *domain* and a *group* end with their
slash, so that the concatenation of the parts of a tag key is the key.
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
"""Machine type of the cloud provider; usage is also summed up by machine type."""
FAILURE_DOMAIN_ZONE = "si/zone"
"""Failure zone."""
FAILURE_DOMAIN_REGION = "si/region"
"""Region of the zone."""
LOCAL_IMAGES = "si/local-images"
"""Container images that are already on the node."""
NODE_PARTITION = "si/node-partition"
"""Partition that the node joins, by the name that the RM uses."""

# Attributes of an allocation.

APPLICATION_ID = "si/application-id"
"""Application of an allocation."""
CONTAINER_IMAGE = "si/container-image"
"""Container image to run."""
CONTAINER_PORTS = "si/container-ports"
"""Ports that the container opens."""

# Parts of the tag keys of an allocation or an ask (I35).

DOMAIN_K8S = "kubernetes.io/"
"""Domain of Kubernetes' own information about a pod."""
DOMAIN_YUNIKORN = "yunikorn.apache.org/"
"""Domain of information for the scheduler."""

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
"""The node ID of the only node that the pod may run on."""
KEY_ALLOW_PREEMPTION = "allowPreemption"
"""``true`` or ``false``: whether the pod may be preempted (X21)."""

CREATION_TIME = "creationTime"
"""When the RM created the application or the pod, in s since the Unix epoch."""

# Resource types, tags of an application, and more node attributes.

MEMORY = "memory"
"""Resource type for memory, in bytes."""
CPU = "vcore"
"""Resource type for processors, in thousandths of a core."""
APP_TAG_NAMESPACE_RESOURCE_QUOTA = "namespace.resourcequota"
"""JSON of the resource limit of the queue that is created for this application."""
APP_TAG_NAMESPACE_RESOURCE_GUARANTEED = "namespace.resourceguaranteed"
"""JSON of the guaranteed resource of the queue that is created for this application."""
APP_TAG_STATE_AWARE_DISABLE = "application.stateaware.disable"
"""``true``: the application skips the state Starting (X15)."""
NODE_READY_ATTRIBUTE = "ready"
"""``true`` or ``false``: whether the node reports itself ready (X19)."""

# Names that are newer than the specification and used by current RMs.

APP_TAG_CREATE_FORCE = "application.create.force"
"""``true``: accept the application in any case, in the recovery queue if necessary (SI 1.4)."""
APP_TAG_NAMESPACE_RESOURCE_MAX_APPS = "namespace.resourcemaxapps"
"""Limit of running applications of the queue that is created for this application (SI 1.5)."""
DOMAIN_YUNIKORN_INTERNAL = "internal.yunikorn.apache.org/"
"""Domain of internal information between RM and scheduler."""
KEY_FOREIGN = "foreign"
"""The allocation belongs to another scheduler and only occupies resources (X19). It has one of
these values:"""
FOREIGN_STATIC = "static"
"""The allocation belongs to the node and disappears with it."""
FOREIGN_DEFAULT = "default"
"""The allocation is an ordinary pod, placed by another scheduler."""

# Whole tag keys that the scheduler reads.

TAG_CREATION_TIME = DOMAIN_YUNIKORN + CREATION_TIME
"""Creation time. For an application it shortens the placeholder timeout; for an ask it determines
the age."""
TAG_REQUIRED_NODE = DOMAIN_YUNIKORN + KEY_REQUIRED_NODE
"""The node ID of the only node that the ask may be allocated to."""
TAG_ALLOW_PREEMPTION = DOMAIN_YUNIKORN + KEY_ALLOW_PREEMPTION
"""Replaces allowPreemptSelf for an ask without a PreemptionPolicy (X21)."""
TAG_FOREIGN = DOMAIN_YUNIKORN_INTERNAL + KEY_FOREIGN
"""Marks an allocation of another scheduler (X19). Current RMs leave the domain out."""

TAG_DEVICES = "devices"
"""The units of shared devices that an allocation has: ``nvidia.com/gpu=0,3``, several types with ``;``
between them (Q14). The scheduler sets it, and reads it when the allocation is reported again."""


class TagKey(NamedTuple):
    """The parts of a tag key (I35): ``kubernetes.io/`` ``meta/`` ``namespace``.

    `group` is empty if there is none. `str` gives the text that `parse_tag_key` reads.
    """

    domain: str
    group: str
    key: str

    def __str__(self) -> str:
        return "".join(self)


def parse_tag_key(text: str) -> TagKey:
    """Split a tag key into domain, optional group, and key (I35).

    Everything after the second slash is the key, further slashes included, since label names
    contain them (``kubernetes.io/label/app.kubernetes.io/name``). Raises ValueError for a text
    without a domain or with an empty part.
    """
    parts = text.split("/", 2)
    if len(parts) < 2 or not all(parts):
        raise ValueError(f"tag key {text!r} is not domain/[group/]key")
    domain, *group, key = parts
    return TagKey(f"{domain}/", f"{group[0]}/" if group else "", key)


def build_tag_key(domain: str, key: str, *, group: str = "") -> str:
    """Build a tag key; `domain` and `group` may be given with or without their slash (I35).

    Raises ValueError if `parse_tag_key` would return other parts: for an empty domain or key, a
    slash within domain or group, or a slash in the key without a group.
    """
    parts = [domain.removesuffix("/"), key]
    if group:
        parts.insert(1, group.removesuffix("/"))
    text = "/".join(parts)
    wanted = TagKey(f"{parts[0]}/", f"{parts[1]}/" if group else "", key)
    if parse_tag_key(text) != wanted:
        raise ValueError(f"domain {domain!r}, group {group!r}, key {key!r}: not a tag key")
    return text
