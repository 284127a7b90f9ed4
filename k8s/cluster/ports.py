"""Host ports: which ones are taken on each node (K123)."""

from __future__ import annotations

from quadriga.k8s.objects import PodSpec

__all__ = ["HostPort", "HostPorts", "host_ports"]

#: protocol, port, address; "" for every address of the node
HostPort = tuple[str, int, str]

_EVERY = ("", "0.0.0.0")


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The host ports of the containers that run as long as the pod does."""
    sidecars = [each for each in spec.init_containers if each.restart_policy == "Always"]
    found = set()
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number > 0:
                address = "" if port.host_ip in _EVERY else port.host_ip
                found.add((port.protocol or "TCP", number, address))
    return tuple(sorted(found))


class HostPorts:
    """The ports in use, counted by node."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[tuple[str, int], dict[str, int]]] = {}

    def add(self, node: str, ports: tuple[HostPort, ...], number: int) -> None:
        """So many more pods with these ports are on the node."""
        taken = self._nodes.setdefault(node, {})
        for protocol, port, address in ports:
            addresses = taken.setdefault((protocol, port), {})
            now = addresses.get(address, 0) + number
            if now:
                addresses[address] = now
                continue
            del addresses[address]
            if not addresses:
                del taken[protocol, port]
        if not taken:
            del self._nodes[node]

    def conflict(self, node: str, ports: tuple[HostPort, ...]) -> HostPort | None:
        """The first of the ports that another pod has on the node."""
        taken = self._nodes.get(node)
        if taken is None:
            return None
        for protocol, port, address in ports:
            addresses = taken.get((protocol, port))
            if addresses and (not address or address in addresses or "" in addresses):
                return protocol, port, address
        return None
