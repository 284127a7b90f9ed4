"""The control plane as one test has it: its namespace, its nodes, its schedulers, and what happens to its pods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from control_plane import ControlPlane
from plain_client import History, Object, PlainClient
from process_kubelet import ProcessKubelet
from scheduler_process import Quadriga


@dataclass(frozen=True)
class Cluster:
    """``kubelet`` and ``quadriga`` start one; ``history`` is of a kind. Pods are those of the namespace."""

    plane: ControlPlane
    admin: PlainClient
    pods: History
    history: Callable[[str], History]
    namespace: str
    kubelet: Callable[..., ProcessKubelet]
    quadriga: Callable[..., Quadriga]

    def create(self, *things: Object) -> Object:
        """In the namespace; the last one as the server has it."""
        return [self.admin.create(each, self.namespace) for each in things][-1]

    def delete(self, name: str) -> None:
        """A pod, without grace."""
        self.admin.delete("Pod", self.namespace, name, grace=0)

    def until(self, holds: Callable[[list[Object]], object], **more: Any) -> list[Object]:
        return self.pods.until(holds, self.namespace, **more)

    def present(self) -> list[Object]:
        return self.pods.in_namespace(self.namespace)

    def changes(self) -> list[tuple[str, Object]]:
        return self.pods.of(self.namespace)
