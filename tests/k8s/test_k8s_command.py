"""``quadriga kubernetes``: its options, --check, the policies, and what it says of wrong input."""

import argparse
import json
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from quadriga.cli import kubernetes, serve
from quadriga.cli.serving.addresses import Address
from quadriga.cli.serving.admission import plan_of
from quadriga.cli.serving.kubernetes_settings import kubernetes_settings_of
from quadriga.cli.serving.settings import settings_of

REPOSITORY = Path(__file__).resolve().parents[2]


class Api:
    def __init__(self) -> None:
        self.refuses: set[tuple[str, str]] = set()
        self.asked: list[dict[str, str]] = []
        self.maps: dict[str, dict[str, str]] = {}
        self.status = 0
        self.groups: dict[str, str] = {}
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked = sent["spec"]["resourceAttributes"]
                api.asked.append(asked)
                allowed = (asked["resource"], asked["verb"]) not in api.refuses
                self.answer(201, {"status": {"allowed": allowed}})

            def do_GET(self) -> None:
                name = self.path.rpartition("/")[2]
                if name in api.maps:
                    metadata = {"name": name, "namespace": "q"}
                    self.answer(200, {"metadata": metadata, "data": api.maps[name]})
                elif group := api.groups.get(self.path):
                    self.answer(200, {"resources": [{"name": group}]})
                else:
                    self.answer(404, {"message": f"{name} not found"})

            def answer(self, status: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(api.status or status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                """A client may leave in the middle."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def api() -> Iterator[Api]:
    api = Api()
    yield api
    api.stop()


def config_of(folder: Path, server: str) -> Path:
    path = folder / "kubeconfig"
    user, context = {"token": "t"}, {"cluster": "c", "user": "u"}
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "x"}
    config |= {"clusters": [{"name": "c", "cluster": {"server": server}}]}
    config |= {
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": context}],
    }
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


@pytest.fixture
def kubeconfig(api: Api, tmp_path: Path) -> Path:
    return config_of(tmp_path, api.url)


@pytest.fixture
def check(quadriga: Callable[..., Any], kubeconfig: Path) -> Callable[..., Any]:
    return partial(quadriga, "kubernetes", "--check", "--kubeconfig", kubeconfig)


@pytest.mark.parametrize(
    ("path", "resource", "verb", "rights"),
    [
        ("/apis/scheduling.k8s.io/v1alpha2", "podgroups", "watch", 18),
        ("/apis/resource.k8s.io/v1", "deviceclasses", "list", 17),
    ],
)
def test_k18_rights_on_what_not_every_server_has_count_where_it_has_them(
    check: Callable[..., Any], api: Api, path: str, resource: str, verb: str, rights: int
) -> None:
    api.refuses = {(resource, verb)}
    done = check()
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{api.url}: the account has all 16 rights that it needs\n"
    api.groups = {path: resource}
    done = check()
    assert (done.code, f"{resource}.{path.split('/')[2]}" in done.out) == (1, True)
    api.refuses = set()
    assert check().out.endswith(f": the account has all {rights} rights that it needs\n")


def test_k18_what_is_missing_is_a_table_with_reasons(check: Callable[..., Any], api: Api) -> None:
    api.refuses = {("pods", "create"), ("nodes", "watch"), ("leases", "update")}
    done = check("--namespace", "q")
    assert done.code == 1
    lines = [re.split(r"  +", line, maxsplit=3) for line in done.out.splitlines() if "  " in line]
    assert [line[:3] for line in lines] == [
        ["RESOURCE", "VERBS", "WHERE"],
        ["pods", "create", "all namespaces"],
        ["pods/binding", "create", "all namespaces"],
        ["nodes", "watch", "all namespaces"],
        ["leases.coordination.k8s.io", "update", "q"],
    ]
    assert lines[2][3] == "no pod gets a node"
    binding = {"group": "", "resource": "pods", "subresource": "binding", "verb": "create"}
    lease = {"group": "coordination.k8s.io", "resource": "leases", "verb": "update"}
    assert binding in api.asked and {**lease, "namespace": "q"} in api.asked
    assert "deploy/kubernetes/roles.yaml grants all of them" in done.out
    said = check("--namespace", "q", "--json")
    missing = json.loads(said.out)["missing"]
    assert said.code == 1
    assert [(each["resource"], each["verbs"], each["without"]) for each in missing] == [
        (line[0].partition(".")[0], line[1].split(","), line[3]) for line in lines[1:]
    ]


def test_a_silent_cluster_is_an_error(check: Callable[..., Any], api: Api, tmp_path: Path) -> None:
    api.status = 401
    done = check()
    assert done.code == 1
    assert "answers 401 to an access review" in done.err
    config_of(tmp_path, "http://127.0.0.1:1")
    done = check()
    assert done.code == 1
    assert done.err.startswith("quadriga: kubernetes: http://127.0.0.1:1: ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kubeconfig", "/nowhere"], "/nowhere"),
        (["--context", "other"], "other"),
        (["--core-tls"], "go with --core"),
        (["--core", "elsewhere"], "--core elsewhere: write HOST:PORT"),
        (["--health", "x"], "--health 'x' is neither HOST:PORT nor PORT nor off"),
        (["--http", "0.0.0.0:0"], "beyond loopback"),
        (["--grace", "-1"], "--grace is -1"),
        (["--admission", "off"], "--admission off"),
        (["--admission", "9089", "--admission-cert", "c.pem"], "belong together"),
        (["--admission", "9089", "--admission-url", "http://x"], "begins with https://"),
        (["--max-connections", "0"], "--max-connections is 0, not within 1 and 100000"),
        (["admission", "--max-connections", "0"], "--max-connections is 0, not within 1 and"),
        (["admission", "--listen", "x"], "--listen 'x' is neither HOST:PORT nor PORT nor off"),
        (["admission", "--listen", "off"], "--listen off"),
        (["admission", "--kubeconfig", "/nowhere"], "/nowhere"),
        (["admission", "--policy", "--settings", "/nowhere"], "/nowhere: No such file"),
    ],
)
def test_wrong_options_are_one_line_that_names_them(
    quadriga: Callable[..., Any], kubeconfig: Path, options: list[str], said: str
) -> None:
    done = quadriga("kubernetes", "--kubeconfig", kubeconfig, *options)
    assert done.code == 2
    command = "kubernetes admission" if options[0] == "admission" else "kubernetes"
    assert done.err.startswith(f"quadriga: {command}: ")
    assert said in done.err
    assert not {"serve:", "kubernetes:"} & {
        *done.err.removeprefix(f"quadriga: {command}: ").split()
    }
    assert done.err.count("\n") == 1


def test_k192_without_the_extra_the_command_says_what_to_install(
    quadriga: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "lightkube", None)
    done = quadriga("kubernetes", "--check")
    assert done.code == 2
    assert "pip install '.[kubernetes]'" in done.err


def parser(command: Any, name: str) -> argparse.ArgumentParser:
    commands = argparse.ArgumentParser().add_subparsers()
    command.configure(commands)
    found: argparse.ArgumentParser = commands.choices[name]
    return found


def options(of: argparse.ArgumentParser) -> set[str]:
    return {name for action in of._actions for name in action.option_strings} - {"-h", "--help"}


def parsed(*arguments: str) -> argparse.Namespace:
    return parser(kubernetes, "kubernetes").parse_args(list(arguments))


def test_every_option_of_its_own_is_told_and_no_other() -> None:
    page = (REPOSITORY / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    section = page.partition("\n## The command\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in re.findall(r"`(--[a-z-]+)", row)}
    own = options(parser(kubernetes, "kubernetes")) - options(parser(serve, "serve"))
    assert told == own | {"--http"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    others = "namespace format watch replicas field-selector output policy policy-version listen settings strict"
    kubectl = "for timeout help local filename type patch force set create-namespace subresource"
    elsewhere = {f"--{name}" for name in f"{others} {kubectl}".split()}
    assert named <= own | options(parser(serve, "serve")) | elsewhere


def test_the_options_of_the_deployment(monkeypatch: pytest.MonkeyPatch, kubeconfig: Path) -> None:
    text = (REPOSITORY / "deploy" / "kubernetes" / "deployment.yaml").read_text(encoding="utf-8")
    spec = yaml.safe_load(text)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["command"] == ["quadriga", "kubernetes"]
    arguments = parsed(*container["args"], "--kubeconfig", str(kubeconfig))
    monkeypatch.setenv("NAMESPACE", "quadriga")
    settings = kubernetes_settings_of(arguments)
    assert settings.health == Address("0.0.0.0", 9082)
    assert settings.namespace == "quadriga"
    assert settings.lease is None, "as the ConfigMaps say"
    whole = settings_of(arguments, settings)
    assert whole.http == Address("127.0.0.1", 9080), "pages are for port-forward only"
    assert whole.grace_s < spec["terminationGracePeriodSeconds"]


def test_k11_k47_each_process_is_a_candidate_of_the_namespace_of_the_option_or_the_variable(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: Path
) -> None:
    config = ["--kubeconfig", str(kubeconfig)]
    monkeypatch.delenv("NAMESPACE", raising=False)
    assert kubernetes_settings_of(parsed(*config)).namespace == "default"
    monkeypatch.setenv("NAMESPACE", "a")
    assert kubernetes_settings_of(parsed(*config)).namespace == "a"
    assert kubernetes_settings_of(parsed(*config, "--namespace", "b")).namespace == "b"
    first, second = (kubernetes_settings_of(parsed(*config)).identity for _ in range(2))
    assert first != second
    assert kubernetes_settings_of(parsed(*config, "--no-lease")).lease is False


def test_k158_the_webhook_listens_where_its_service_expects_it() -> None:
    arguments = parsed("--namespace", "q", "admission")
    assert arguments.policy is False
    assert arguments.namespace == "q", "an option before the subcommand holds"
    plan = plan_of(arguments, arguments.listen, "q", "--listen")
    assert (plan.own_namespace, plan.host, plan.port) == ("q", "0.0.0.0", 9089)
    assert (plan.mounted, plan.url) == (None, "")
    mounted = ["--admission-cert", "c", "--admission-key", "k", "--admission-url", "https://h:1/"]
    plan = plan_of(parsed("admission", *mounted), "127.0.0.1:1", "q", "--listen")
    assert (plan.mounted, plan.url) == ((Path("c"), Path("k")), "https://h:1")


def test_k167_policies_are_printed_for_the_settings_of_the_cluster(
    quadriga: Callable[..., Any], kubeconfig: Path, api: Api
) -> None:
    api.maps["yunikorn-configs"] = {
        "admissionController.filtering.bypassNamespaces": "^legacy-",
        "service.unknown": "1",
    }
    own = ("--kubeconfig", kubeconfig, "--namespace", "q")
    done = quadriga("kubernetes", *own, "admission", "--policy")
    assert done.code == 0
    assert "MutatingAdmissionPolicy" in [each["kind"] for each in yaml.safe_load_all(done.out)]
    assert "^legacy-" in done.out and "admissionregistration.k8s.io/v1\n" in done.out
    assert "service.unknown" in done.err


def test_k167_policies_are_printed_for_a_file(quadriga: Callable[..., Any]) -> None:
    file = REPOSITORY / "deploy" / "kubernetes" / "configuration.yaml"
    more = ("--namespace", "quadriga", "--policy-version", "v1beta1")
    done = quadriga("kubernetes", "admission", "--policy", "--settings", file, *more)
    assert (done.code, done.err) == (0, "")
    assert "admissionregistration.k8s.io/v1beta1" in done.out


def test_wrong_settings_give_no_policies(quadriga: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "map.yaml"
    own = "kind: ConfigMap\nmetadata: {name: yunikorn-configs}\n"
    wrong = own + "data: {admissionController.accessControl.bypassAuth: maybe}\n"
    for text, said in (
        ("kind: ConfigMap\nmetadata: {name: other}\n", "no ConfigMap yunikorn-defaults or"),
        ("a: [", "map.yaml"),
        (wrong, "bypassAuth: 'maybe' is neither true nor false"),
    ):
        file.write_text(text, encoding="utf-8")
        done = quadriga("kubernetes", "admission", "--policy", "--settings", file)
        assert done.code in (1, 2)
        assert done.out == ""
        assert said in done.err
    done = quadriga("kubernetes", "admission", "--policy", "--settings", tmp_path / "none")
    assert (done.code, done.out) == (2, "")
