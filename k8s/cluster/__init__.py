"""The cluster as the predicates see it, and the predicates themselves."""

from quadriga.k8s.cluster.cache import ClusterCache

__all__ = ["ClusterCache"]
