"""Host ports: which ones are in use on each node (K123)."""

from __future__ import annotations

from collections.abc import Mapping

from quadriga.k8s.objects import PodSpec

#: protocol, port, address; "" for every address of the node
HostPort = tuple[str, int, str]

_EVERY = ("", "0.0.0.0")


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the host ports of the containers that run as long as the pod does."""
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
        #: by protocol and port, then by node, then by address
        self._taken: dict[tuple[str, int], dict[str, dict[str, int]]] = {}

    def add(self, node: str, ports: tuple[HostPort, ...], number: int) -> None:
        """Add ``number`` pods with these ports on the node; negative to remove."""
        for protocol, port, address in ports:
            nodes = self._taken.setdefault((protocol, port), {})
            addresses = nodes.setdefault(node, {})
            now = addresses.get(address, 0) + number
            if now:
                addresses[address] = now
                continue
            del addresses[address]
            if not addresses:
                del nodes[node]
                if not nodes:
                    del self._taken[protocol, port]

    def conflict(self, node: str, ports: tuple[HostPort, ...]) -> HostPort | None:
        """Return the first of the ports that another pod uses on the node."""
        for port in ports:
            nodes = self._taken.get(port[:2])
            if nodes and (addresses := nodes.get(node)) and _meets(port, addresses):
                return port
        return None

    def nodes_with(self, port: HostPort) -> list[str]:
        """Return the nodes where another pod uses the port."""
        nodes = self._taken.get(port[:2], {})
        return [node for node, addresses in nodes.items() if _meets(port, addresses)]


def _meets(port: HostPort, addresses: Mapping[str, int]) -> bool:
    address = port[2]
    return not address or address in addresses or "" in addresses
