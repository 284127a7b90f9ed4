"""``quadriga kubernetes``: the scheduler of a Kubernetes cluster."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace, _ActionsContainer
from collections.abc import Iterator
from contextlib import contextmanager

from quadriga.cli import serve
from quadriga.cli.connecting import add_connection
from quadriga.cli.errors import CommandError
from quadriga.cli.parsing import CORE_LIMITS, GRPC_LIMITS, HTTP_LIMITS, Commands, add_file

HEALTH_PORT, WEBHOOK_PORT = 9082, 9089
_DESCRIPTION = """\
Schedule the pods of a Kubernetes cluster whose schedulerName is ours (default: yunikorn). Settings and
queues come from the ConfigMaps yunikorn-defaults and yunikorn-configs in the scheduler's namespace.
"""

_EPILOG = """\
examples:
  quadriga kubernetes --check               what the account may not do
  quadriga kubernetes                       schedule, with the kubeconfig of kubectl
  quadriga kubernetes admission --policy    print the admission policies for kubectl apply

signals:
  SIGTERM, SIGINT   stop cleanly within --grace and give the lease back; a second signal ends at once

exit codes: 0 stopped by SIGTERM, 1 a part failed, the lease is lost or --check found something, 2 wrong
usage or input, 130 stopped by SIGINT; after a second signal: 128 plus its number
"""

_ADMISSION = """\
Give pods that do not name a scheduler to ours, and vouch for their users. With --policy the policies
that the API server evaluates itself are printed (server 1.34 or later); otherwise the webhook is served.
"""

_ADMISSION_EPILOG = """\
examples:
  quadriga kubernetes admission --policy | kubectl apply -f -
  quadriga kubernetes admission --listen 0.0.0.0:9090
"""


def configure(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "kubernetes",
        help="schedule a Kubernetes cluster",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    _add_cluster(parser)
    group = parser.add_argument_group("scheduling")
    group.add_argument(
        "--no-lease", action="store_true", help="schedule without being elected the leader"
    )
    group.add_argument(
        "--check", action="store_true", help="print which rights the account lacks, and end"
    )
    group.add_argument("--json", action="store_true", help="with --check: print one JSON object")
    group.add_argument(
        "--ask-form",
        choices=("ask", "allocation"),
        default="ask",
        help="form of the asks to the core; allocation is the form since SI 1.6 (default: ask)",
    )
    _add_webhook(group, "--admission", "serve the admission webhook in this process too, at")
    add_connection(
        parser, "--core", "started by 'quadriga serve', instead of one in this process", "core-"
    )
    _add_where(parser)
    serve.add_trust(parser)
    serve.add_running(parser)
    serve.add_limits(parser, HTTP_LIMITS + CORE_LIMITS)
    limits = {each.name: each.default for each in GRPC_LIMITS}
    parser.set_defaults(
        run=run, config=None, demo=False, demo_speed=60.0, clock="real", grpc="off", **limits
    )
    below = parser.add_subparsers(title="commands", metavar="COMMAND")
    _configure_admission(below)


def _add_cluster(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("cluster")
    add_file(
        group,
        "--kubeconfig",
        "how to reach the cluster (default: the account of the pod, $KUBECONFIG, ~/.kube/config)",
    )
    group.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
    group.add_argument(
        "--namespace",
        metavar="NAME",
        help="namespace of the ConfigMaps and the lease (default: $NAMESPACE, or 'default')",
    )


def _add_webhook(group: _ActionsContainer, option: str, what: str) -> None:
    group.add_argument(
        option,
        metavar="[HOST:]PORT",
        help=f"{what} this address, by TLS (usual: 0.0.0.0:{WEBHOOK_PORT})",
    )
    add_file(
        group,
        "--admission-cert",
        "the webhook's certificate and chain (PEM); without it one is made and kept in a Secret",
    )
    add_file(group, "--admission-key", "the key of that certificate (PEM)")
    group.add_argument(
        "--admission-url",
        metavar="URL",
        help="https://HOST:PORT where the API server reaches the webhook, if not by its service",
    )


def _add_where(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("addresses")
    serve.add_port(group, "--http", serve.HTTP_PORT, "port of REST, metrics and pages")
    about = "port of /livez, /readyz and /metrics only"
    serve.add_port(group, "--health", HEALTH_PORT, about)
    serve.add_ui(group)
    serve.add_ports_file(group)


def _configure_admission(commands: Commands) -> None:
    parser = commands.add_parser(
        "admission",
        help="admission of pods, as policies or as a webhook",
        description=_ADMISSION,
        epilog=_ADMISSION_EPILOG,
        argument_default=SUPPRESS,  # an option before 'admission' holds too
    )
    _add_cluster(parser)
    parser.add_argument(
        "--policy",
        action="store_true",
        help="print the policies, by the settings of the cluster's ConfigMaps",
    )
    add_file(
        parser, "--settings", "with --policy: a file with the ConfigMap instead of the cluster's"
    )
    parser.add_argument(
        "--policy-version",
        choices=("v1", "v1beta1"),
        default="v1",
        help="with --policy: version of the mutating policies; v1beta1 is that of server 1.34"
        " (default: v1)",
    )
    group = parser.add_argument_group("webhook")
    _add_webhook(group, "--listen", "serve at")
    parser.set_defaults(
        run=run_admission, listen=f"0.0.0.0:{WEBHOOK_PORT}", settings=None, policy=False
    )
    serve.add_limits(parser, HTTP_LIMITS)
    serve.add_logs(parser.add_argument_group("operation"))


def run(arguments: Namespace) -> int:
    """Schedule until told to stop, or check the rights."""
    _need()
    from quadriga.cli.serving.kubernetes_settings import namespace_of

    if arguments.json and not arguments.check:
        raise CommandError("kubernetes: --json is only for --check")
    if arguments.check:
        from quadriga.cli.serving.rights import check

        return check(arguments, namespace_of(arguments))
    from quadriga.cli.serving.kubernetes_process import schedule

    with _errors_of("kubernetes"):
        return schedule(arguments)


def run_admission(arguments: Namespace) -> int:
    """Print the policies, or serve the webhook."""
    with _errors_of("kubernetes admission"):
        _need()
        from quadriga.cli.serving.kubernetes_settings import namespace_of

        if arguments.policy:
            from quadriga.cli.serving.policies import print_policy

            return print_policy(arguments, namespace_of(arguments))
        from quadriga.cli.serving.admission import serve_webhook

        return serve_webhook(arguments, namespace_of(arguments))


@contextmanager
def _errors_of(command: str) -> Iterator[None]:
    """Name this command in errors of what it shares with others."""
    try:
        yield
    except CommandError as error:
        said = str(error).removeprefix("serve: ").removeprefix("kubernetes: ")
        raise CommandError(f"{command}: {said}", error.code) from None


def _need() -> None:
    try:
        import aiohttp  # noqa: F401
        import httptools  # noqa: F401
        import lightkube  # noqa: F401
        import msgspec  # noqa: F401
    except ImportError as error:
        raise CommandError(
            f"kubernetes: this needs the extra 'kubernetes' ({error}):"
            " pip install '.[kubernetes]' in a checkout of Quadriga"
        ) from None
