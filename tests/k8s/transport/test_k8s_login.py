"""Where the API server is and as whom: kubeconfigs, service accounts, tokens that rotate (K191)."""

import base64
import json
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from quadriga.k8s.transport.client import Client
from quadriga.k8s.transport.limits import Limits
from quadriga.k8s.transport.login import ExecPlugin, Fixed, Login, LoginError, TokenFile, log_in
from quadriga.k8s.transport.requester import NoAnswer
from tests.k8s.fake_api import FakeApi

MINUTE = 60_000_000_000


class Now:
    ns = 1_000_000_000_000

    def __call__(self) -> int:
        return self.ns


def kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> str:
    path = folder / "config"
    config = {
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "quadriga"}},
            {"name": "there", "context": {"cluster": "d", "user": "u"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": "http://127.0.0.1:1/"} | cluster},
            {"name": "d", "cluster": {"server": "http://127.0.0.1:2"}},
        ],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(config))
    return str(path)


def login(folder: Path, user: dict[str, Any], context: str | None = None, **cluster: Any) -> Login:
    return log_in(kubeconfig(folder, user, **cluster), context, clock=Now(), wall=Now())


async def header(found: Login) -> str | None:
    return await found.credentials.header()


async def test_k191_tokens_contexts_and_passwords_of_the_kubeconfig(tmp_path: Path) -> None:
    found = login(tmp_path, {"token": "abc"})
    assert (found.server, found.namespace, found.ssl) == ("http://127.0.0.1:1", "quadriga", None)
    assert await header(found) == "Bearer abc"
    found = login(tmp_path, {"username": "me", "password": "secret"}, "there")
    assert (found.server, found.namespace) == ("http://127.0.0.1:2", "default")
    assert await header(found) == "Basic " + base64.b64encode(b"me:secret").decode()
    assert await header(login(tmp_path, {})) is None


async def test_k191_a_token_file_is_read_every_minute_and_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    now = Now()
    found = log_in(kubeconfig(tmp_path, {"tokenFile": "token"}), clock=now, wall=now)
    assert await header(found) == "Bearer one"
    (tmp_path / "token").write_text("two")
    now.ns += MINUTE - 1
    assert await header(found) == "Bearer one"
    now.ns += 1
    assert await header(found) == "Bearer two"
    (tmp_path / "token").unlink()
    now.ns += MINUTE
    assert await header(found) == "Bearer two"
    found = TokenFile(tmp_path / "token", Now())
    with pytest.raises(LoginError, match="token file cannot be read"):
        await found.header()


async def test_k191_a_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("abc")
    (tmp_path / "namespace").write_text("quadriga")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(LoginError, match="certificates"):
        log_in(clock=Now(), wall=Now(), service_account=str(tmp_path))
    authority = ssl.get_default_verify_paths().cafile or ""
    if not Path(authority).is_file():
        pytest.skip("no certificates on this machine")
    (tmp_path / "ca.crt").write_bytes(Path(authority).read_bytes())
    found = log_in(clock=Now(), wall=Now(), service_account=str(tmp_path))
    assert (found.server, found.namespace) == ("https://10.0.0.1:443", "quadriga")
    assert found.ssl.verify_mode == ssl.CERT_REQUIRED
    assert found.ssl.check_hostname
    assert await header(found) == "Bearer abc"


async def test_k191_without_a_service_account_the_environments_kubeconfig_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, {"token": "abc"}))
    found = log_in(clock=Now(), wall=Now(), service_account=str(tmp_path / "none"))
    assert found.server == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "KeyError"),
        ("[1]", "cannot be read"),
        ("a: [", "cannot be read"),
        ('{"clusters": [], "contexts": [], "current-context": "here"}', "Context 'here' not found"),
        ('{"clusters": [], "contexts": []}', "No current context"),
    ],
)
async def test_a_wrong_kubeconfig_says_why(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(LoginError, match=why):
        log_in(str(path), clock=Now(), wall=Now())


async def test_a_kubeconfig_that_is_not_there_or_has_an_auth_provider(tmp_path: Path) -> None:
    with pytest.raises(LoginError, match="not found"):
        log_in(str(tmp_path / "none"), clock=Now(), wall=Now())
    with pytest.raises(LoginError, match="auth-provider"):
        login(tmp_path, {"auth-provider": {"name": "gcp"}})


_PLUGIN = """\
import json, os, sys
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
count = len(open("{log}", "a+").write("x") and open("{log}").read())
print(json.dumps({{"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": {{
    "token": f"{{os.environ['WHO']}}-{{count}}", "expirationTimestamp": "2026-11-23T12:00:00Z"}}}}))
"""


def plugin(
    folder: Path, code: str, version: str = "client.authentication.k8s.io/v1"
) -> dict[str, Any]:
    script = folder / "plugin.py"
    script.write_text(code.format(log=folder / "log"))
    return {
        "exec": {
            "apiVersion": version,
            "command": sys.executable,
            "args": [str(script)],
            "env": [{"name": "WHO", "value": "me"}],
        }
    }


async def test_k191_an_exec_plugin_is_asked_again_when_its_token_expires(tmp_path: Path) -> None:
    now = Now()
    now.ns = 1_795_435_200_000_000_000 - MINUTE  # 2026-11-23T11:59:00Z
    (tmp_path / "log").write_text("")
    found = log_in(kubeconfig(tmp_path, plugin(tmp_path, _PLUGIN)), clock=now, wall=now)
    assert isinstance(found.credentials, ExecPlugin)
    first = await header(found)
    assert first.startswith("Bearer me-")
    assert await header(found) == first
    now.ns += MINUTE // 2
    assert await header(found) != first
    assert found.credentials.refused()


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import sys; sys.exit('no such account')", "ended with 1: no such account"),
        ("print('hello')", "gave no token"),
        ('print(\'{{"status": {{"token": 7}}}}\')', "gave no token"),
    ],
)
async def test_an_exec_plugin_that_fails_says_why(tmp_path: Path, code: str, why: str) -> None:
    found = login(tmp_path, plugin(tmp_path, code))
    with pytest.raises(LoginError, match=why):
        await header(found)


async def test_an_exec_plugin_that_is_missing_or_unknown_is_refused(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./none"}}
    with pytest.raises(LoginError, match=f"{tmp_path}/none cannot be started"):
        await header(login(tmp_path, user))
    with pytest.raises(LoginError, match="v9"):
        login(tmp_path, plugin(tmp_path, "", "client.authentication.k8s.io/v9"))


def limits() -> Limits:
    return Limits(1000, 1000, 32, clock=Now())


async def test_k191_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    api = FakeApi()
    async with (
        api.serve(),
        Client(Login(api.url, None, TokenFile(token, Now())), limits()) as client,
    ):
        await client.request("GET", "/a")
        token.write_text("new")
        api.fault("GET /a", 401)
        status, _ = await client.request("GET", "/a")
        assert status == 404
        sent = [each["Authorization"] for each in api.headers]
        assert sent == ["Bearer old", "Bearer old", "Bearer new"]


async def test_k191_connections_are_kept_and_an_only_token_is_not_sent_twice() -> None:
    api = FakeApi()
    async with api.serve(), Client(Login(api.url), limits()) as client:
        for _ in range(10):
            await client.request("POST", "/a/binding", b"{}")
        assert len(api.connections) == 1
    api = FakeApi()
    async with api.serve(), Client(Login(api.url, None, Fixed("Bearer x")), limits()) as client:
        api.fault("GET /a", 401)
        status, _ = await client.request("GET", "/a")
        assert status == 401
        assert len(api.requests) == 1


async def test_without_credentials_there_is_no_answer(tmp_path: Path) -> None:
    credentials = TokenFile(tmp_path / "none", Now())
    async with Client(Login("http://127.0.0.1:1", None, credentials), limits()) as client:
        with pytest.raises(NoAnswer, match="token file cannot be read"):
            await client.request("GET", "/a")


async def test_a_server_that_is_not_there_gives_no_answer_and_its_turn_back() -> None:
    heard: list[tuple[str, str, int]] = []

    def observe(*observed: Any) -> None:
        heard.append(observed)

    few = Limits(1000, 1000, 1, clock=Now())
    async with Client(Login("http://127.0.0.1:1"), few, observe=observe) as client:
        for _ in range(2):
            with pytest.raises(NoAnswer):
                await client.request("GET", "/a")
    assert heard == [("GET", "/a", 0)] * 2
