"""The cache's records of nodes and pods."""

from __future__ import annotations

from dataclasses import dataclass

from quadriga.k8s.cluster.pod_signatures import PodSignature
from quadriga.k8s.cluster.selections import Profile
from quadriga.k8s.cluster.volumes import PodVolumes
from quadriga.k8s.objects import Node, Pod


@dataclass(slots=True, eq=False)
class NodeRecord:
    """A node, and its index."""

    node: Node
    #: its index in the answers of each signature
    index: int


@dataclass(slots=True, eq=False)
class PodRecord:
    """A pod that has not terminated."""

    pod: Pod
    signature: PodSignature
    profile: Profile
    #: ``None`` without claims and disks
    volumes: PodVolumes | None = None
    #: the node that the core has chosen, until the pod is bound or the choice is undone; "" for none
    assumed: str = ""
    #: the node of the latest positive answer, until that is confirmed, replaced, or too old (K99)
    tentative: str = ""
    #: when (ns) that answer is too old
    deadline: int = 0
    #: the node where it counts now; "" for nowhere
    counted: str = ""

    @property
    def place(self) -> str:
        """The node where it counts."""
        return self.pod.spec.node_name or self.assumed or self.tentative
