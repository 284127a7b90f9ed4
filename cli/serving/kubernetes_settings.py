"""The settings of ``quadriga kubernetes``, parsed and validated before anything is started."""

from __future__ import annotations

import os
import platform
import uuid
from argparse import Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quadriga.cli.serving.addresses import Address, address
from quadriga.cli.serving.rights import logged_in

if TYPE_CHECKING:
    from quadriga.k8s.admission.process import Plan
    from quadriga.k8s.transport.login import Login

#: environment variable with the scheduler's namespace
NAMESPACE = "NAMESPACE"


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """The settings of one run, besides those of every service."""

    login: Login
    #: of the ConfigMaps and the lease
    namespace: str
    #: of this process, unique in the cluster
    identity: str
    #: None: as the ConfigMaps say
    lease: bool | None
    #: of the probes; None if that port is disabled
    health: Address | None
    #: asks in the form of SI 1.6
    unified_asks: bool = False
    #: s: what waits longer makes the process not ready
    health_delay: float = 5.0
    #: of the webhook in this process, if it is to be served
    admission: Plan | None = None
    #: of a port for HTTP: of all and of one address
    connections: tuple[int, int] = (1000, 500)


def kubernetes_settings_of(arguments: Namespace) -> KubernetesSettings:
    """The settings from the options. Raises `CommandError`."""
    from quadriga.cli.serving.admission import connections_of, plan_of

    namespace, plan = namespace_of(arguments), None
    if arguments.admission is not None:
        plan = plan_of(arguments, arguments.admission, namespace, "--admission")
    return KubernetesSettings(
        login=logged_in(arguments.kubeconfig, arguments.context),
        namespace=namespace,
        # a pod's name is that of its host; a process that is started again there is another one
        identity=f"{platform.node() or 'quadriga'}_{uuid.uuid4().hex[:8]}",
        lease=False if arguments.no_lease else None,
        health=address("--health", arguments.health),
        admission=plan,
        unified_asks=arguments.ask_form == "allocation",
        health_delay=arguments.health_delay,
        connections=connections_of(arguments),
    )


def namespace_of(arguments: Namespace) -> str:
    """The scheduler's namespace."""
    return str(arguments.namespace or os.environ.get(NAMESPACE) or "default")
