"""Login: the address of the API server, and the credentials (K191).

The configuration is read by lightkube: a kubeconfig with its contexts, or the service account of a pod in the
cluster. Tokens in files rotate, so they are read again every minute; those of an exec plugin when they have
expired; both also when the server refuses them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol, cast

from lightkube.config.client_adapter import verify_cluster
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import User, UserExec
from lightkube.core.exceptions import ConfigError
from msgspec import MsgspecError
from yaml import YAMLError

from quadriga.base.times import MINUTE, SECOND
from quadriga.k8s.tuning import TUNING

_EXEC_VERSIONS: Final = tuple(
    f"client.authentication.k8s.io/{v}" for v in ("v1", "v1beta1", "v1alpha1")
)


class LoginError(Exception):
    """The API server cannot be reached with this configuration; the text says why."""


class Credentials(Protocol):
    """Supplies the value of the header Authorization."""

    async def header(self) -> str | None:
        """Return the header's value, or ``None`` for none. Raises `LoginError`."""

    def refused(self) -> bool:
        """Note that the server has refused the last value. Return whether there may be another one."""


def checked(value: str) -> str:
    """Return the value if it is valid in a header. Raises `LoginError`."""
    if not (value.isascii() and value.isprintable()):
        raise LoginError("the token has characters that no header may have")
    return value


@dataclass(frozen=True, slots=True)
class Fixed:
    """A token or password of the kubeconfig, or nothing."""

    value: str | None = None

    async def header(self) -> str | None:
        """Return the fixed value."""
        return None if self.value is None else checked(self.value)

    def refused(self) -> bool:
        """Return false: there is no other value."""
        return False


@dataclass(slots=True, eq=False)
class TokenFile:
    """A token in a file that another process renews. ``clock`` returns ns."""

    path: Path
    clock: Callable[[], int]
    _value: str = ""
    _read_at: int = 0

    async def header(self) -> str | None:
        """Return the token, read from the file at most once a minute."""
        now = self.clock()
        if not self._value or now - self._read_at >= MINUTE:
            try:
                self._value = f"Bearer {self.path.read_text().strip()}"
            except OSError as error:
                if not self._value:
                    raise LoginError(f"the token file cannot be read: {error}") from None
            self._read_at = now
        return checked(self._value)

    def refused(self) -> bool:
        """Forget the token; return whether the file has another one now."""
        before, self._value = self._value, ""
        try:
            return f"Bearer {self.path.read_text().strip()}" != before
        except OSError:
            return False


@dataclass(slots=True, eq=False)
class ExecPlugin:
    """A program that supplies tokens. ``wall`` returns ns since 1970."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    api_version: str
    wall: Callable[[], int]
    _value: str = ""
    _expires: int | None = None
    _running: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def header(self) -> str | None:
        """Return the token, renewed before it expires."""
        async with self._running:
            if not self._value or self._expired():
                self._value, self._expires = _token_of(self.command[0], await self._output())
        return checked(self._value)

    def refused(self) -> bool:
        """Forget the token; return whether there was one, which the program may replace."""
        had, self._value = bool(self._value), ""
        return had

    def _expired(self) -> bool:
        return self._expires is not None and self.wall() >= self._expires - TUNING.token_early_ns

    async def _output(self) -> bytes:
        name = self.command[0]
        request = {
            "apiVersion": self.api_version,
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        environment = {
            **os.environ,
            **self.environment,
            "KUBERNETES_EXEC_INFO": json.dumps(request),
        }
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
            )
        except OSError as error:
            raise LoginError(f"the exec plugin {name} cannot be started: {error}") from None
        try:
            output, errors = await asyncio.wait_for(process.communicate(), TUNING.plugin_timeout_s)
        except BaseException as error:
            process.kill()
            await process.wait()
            if isinstance(error, TimeoutError):
                raise LoginError(f"the exec plugin {name} did not answer") from None
            raise
        if process.returncode != 0:
            text = errors.decode("utf-8", "replace").strip()[-500:]
            raise LoginError(f"the exec plugin {name} ended with {process.returncode}: {text}")
        return output


def _token_of(name: str, output: bytes) -> tuple[str, int | None]:
    """Return the header and its expiration (ns since 1970) from an exec plugin's output."""
    try:
        status = json.loads(output)["status"]
        token, expires = status["token"], status.get("expirationTimestamp")
        if not isinstance(token, str):
            raise TypeError("the token is not a text")
        until = None
        if expires:
            until = int(datetime.fromisoformat(expires).timestamp()) * SECOND
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LoginError(f"the exec plugin {name} gave no token: {error!r}") from None
    return f"Bearer {token}", until


@dataclass(frozen=True, slots=True, eq=False)
class Login:
    """The address of the API server, and the credentials."""

    #: URL without a trailing slash
    server: str
    #: ``None`` for plain HTTP
    ssl: ssl.SSLContext | None = None
    credentials: Credentials = field(default_factory=Fixed)
    #: the namespace of the configuration
    namespace: str = "default"


def log_in(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    clock: Callable[[], int],
    wall: Callable[[], int],
    service_account: str | None = None,
) -> Login:
    """Return the login of a kubeconfig's context; without a kubeconfig that of the pod's service account, of
    the file in ``KUBECONFIG``, or of ``~/.kube/config``.

    ``clock`` and ``wall`` return ns, ``wall`` since 1970. Raises `LoginError`.
    """
    try:
        if kubeconfig is not None:
            config = KubeConfig.from_file(kubeconfig)
        elif service_account is not None:
            config = KubeConfig.from_env(service_account=service_account)
        else:
            config = KubeConfig.from_env()
        chosen = config.get(context)
    except ConfigError as error:
        raise LoginError(str(error)) from None
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OSError,
        YAMLError,
        MsgspecError,
    ) as error:
        # The file is invalid: lightkube's texts name a key or a line of it.
        raise LoginError(f"the configuration cannot be read: {error!r}") from None
    assert chosen is not None  # it is None only with a default
    return _login_of(chosen, clock, wall)


def _login_of(config: SingleConfig, clock: Callable[[], int], wall: Callable[[], int]) -> Login:
    server = config.cluster.server.rstrip("/")
    user = config.user or User()
    context: ssl.SSLContext | None = None
    if server.startswith("https:"):
        try:
            context = verify_cluster(config.cluster, user, config.abs_file)
        except (ConfigError, OSError, ValueError) as error:
            raise LoginError(
                f"the certificates of the configuration cannot be used: {error}"
            ) from None
    credentials = _credentials_of(config, user, clock, wall)
    return Login(server, context, credentials, config.namespace)


def _credentials_of(
    config: SingleConfig, user: User, clock: Callable[[], int], wall: Callable[[], int]
) -> Credentials:
    if user.token_file is not None:
        return TokenFile(Path(config.abs_file(user.token_file)), clock)
    if user.token is not None:
        return Fixed(f"Bearer {user.token}")
    if user.exec is not None:
        return _plugin_of(config, user.exec, wall)
    if user.username and user.password:
        text = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        return Fixed(f"Basic {text}")
    if user.auth_provider:
        raise LoginError(
            "the configuration has an auth-provider, which is not supported: use an exec plugin"
        )
    return Fixed()


def _plugin_of(config: SingleConfig, plugin: UserExec, wall: Callable[[], int]) -> ExecPlugin:
    if plugin.apiVersion not in _EXEC_VERSIONS:
        raise LoginError(
            f"the exec plugin's version {plugin.apiVersion} is not one of {_EXEC_VERSIONS}"
        )
    command = plugin.command
    if "/" in command:
        # A relative path starts at the kubeconfig's folder.
        command = str(config.abs_file(command))
    environment = {each.name: each.value for each in cast("list[Any]", plugin.env or [])}
    return ExecPlugin((command, *(plugin.args or ())), environment, plugin.apiVersion, wall)
