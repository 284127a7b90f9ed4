"""Our settings whose schedules are compared: one row each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from quadriga.core.config import parse_properties
from quadriga.core.config.tree import NODE_SORT_POLICIES
from quadriga.sim import Report, Simulation, SimulationOptions, queue_configuration
from quadriga.sim.simulation import Progress
from quadriga.sim.workload import Workload


class Setting(NamedTuple):
    """`options` differ from the defaults of `SimulationOptions`, `properties` are those of root."""

    options: Mapping[str, Any] = {}
    properties: Mapping[str, str] = {}

    @property
    def unknown(self) -> str:
        """What of it this version does not have; empty if it has everything."""
        if self.options.get("node_sort", "fair") not in NODE_SORT_POLICIES:
            return f"no node order is named {self.options['node_sort']}"
        _, refused = parse_properties(self.properties)
        return "; ".join(f"{name}: {reason}" for name, reason in refused.items())

    def simulate(self, workload: Workload, progress: Progress | None = None) -> Report:
        """Run the workload. Raises `ValueError` for an invalid option."""
        options = SimulationOptions(**self.options)
        if self.properties:
            config = queue_configuration(
                workload, policy=options.policy, node_sort=options.node_sort
            )
            options = replace(options, config=_with_properties(config, self.properties))
        return Simulation(workload, options, progress).run()


def _with_properties(config: str, properties: Mapping[str, str]) -> str:
    """The configuration with these properties of root."""
    above = "        submitacl: '*'\n"
    lines = [f'          {name}: "{value}"\n' for name, value in properties.items()]
    return config.replace(above, "".join((above, "        properties:\n", *lines)), 1)


_NO_RESERVATIONS: Final = {"reservations": False}

# fmt: off
#: name -> setting; a name says what differs from the default
SETTINGS: Final[dict[str, Setting]] = {
    "default":                    Setting(),
    "no reservations":            Setting(_NO_RESERVATIONS),
    "spreading":                  Setting({"node_sort": "fair"}),
    "packing":                    Setting({"node_sort": "binpacking"}),
    "spreading, no reservations": Setting({"node_sort": "fair", **_NO_RESERVATIONS}),
    "packing, no reservations":   Setting({"node_sort": "binpacking", **_NO_RESERVATIONS}),
    "incremental":                Setting({}, {"gang.admission": "incremental"}),
    "whole":                      Setting({}, {"gang.admission": "whole"}),
    "no gathering":               Setting({}, {"gang.gather.after": "100000h"}),
    "gathering at once":          Setting({}, {"gang.gather.after": "0s"}),
    "gathering after 24 hours":   Setting({}, {"gang.gather.after": "24h"}),
    "10% reserved":               Setting({}, {"reservation.max.share": "10%"}),
    "told":                       Setting({"expected_runtime": True}),
    "told, expected first":       Setting({"expected_runtime": True, "policy": "expected"}),
    "expected first":             Setting({"policy": "expected"}),
}
# fmt: on
