"""The decisions of `rules` as CEL expressions, for the policy and for conditions of the webhook (K167).

Each function returns one expression. In a policy the expressions refer to one another as ``variables.<name>``;
the variables are listed in `policy`. Regular expressions have the same syntax in CEL as in the settings (RE2).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from quadriga.k8s.admission.rules import BOUND, DEFAULT_SCHEDULER, READABLE
from quadriga.k8s.conversion import identity, keys
from quadriga.k8s.conversion.resources import DEVICE_CLASS
from quadriga.k8s.conversion.settings import Settings

_MAX_LABEL: Final = 63
_USER: Final = "request.userInfo.username"

#: characters of a name that JSON escapes, a backslash first; the webhook escapes in the same way
_ESCAPES: Final = tuple(
    (each, json.dumps(each)[1:-1]) for each in ("\\", '"', *map(chr, range(0x20)))
)


def quoted(text: str) -> str:
    """Return a text as a CEL literal."""
    return json.dumps(text, ensure_ascii=False)


def _list(texts: Iterable[str]) -> str:
    return "[" + ", ".join(quoted(each) for each in texts) + "]"


def _matches(patterns: tuple[str, ...], text: str) -> str:
    """Whether one of the patterns matches."""
    return " || ".join(f"{text}.matches({quoted(each)})" for each in patterns) or "false"


def chosen(key: str, wanted: tuple[str, ...], unwanted: tuple[str, ...]) -> str:
    """Whether the namespace is chosen: by its annotation if that is true or false, else by the patterns (K160)."""
    name = "request.namespace"
    by_name = f"({_matches(wanted, name) if wanted else 'true'}) && !({_matches(unwanted, name)})"
    annotation = f"variables.namespaceAnnotations[{quoted(key)}]"
    return (
        f"{quoted(key)} in variables.namespaceAnnotations"
        f' && {annotation} in ["true", "false"]\n'
        f'? {annotation} == "true"\n'
        f": {by_name}"
    )


def for_us(spec: str, settings: Settings) -> str:
    """Whether a pod's spec names one of our schedulers; or none, or the default one, and nothing that only the
    default one can serve (K207)."""
    ours, default = _list(settings.scheduler_names), _list(("", DEFAULT_SCHEDULER))
    return (
        f"has({spec}.schedulerName) && {spec}.schedulerName in {ours} ||\n"
        f"(!has({spec}.schedulerName) || {spec}.schedulerName in {default}) && !has({spec}.workloadRef) &&\n"
        f"!(has({spec}.resourceClaims) && size({spec}.resourceClaims) > 0) &&\n"
        f"!({_asks_for_devices(spec)})"
    )


def _asks_for_devices(spec: str) -> str:
    devices = " || ".join(
        f"has(c.resources.{part}) && c.resources.{part}.exists(r, r.startsWith({quoted(DEVICE_CLASS)}))"
        for part in ("requests", "limits")
    )
    return " ||\n".join(
        f"has({spec}.{kind}) && {spec}.{kind}.exists(c, has(c.resources) && ({devices}))"
        for kind in ("containers", "initContainers")
    )


# -- applications (K54, K161) ----------------------------------------------------------------------


def application_id(settings: Settings) -> str:
    """The application id of pods that name none; "" if it cannot be a label."""
    name = "request.namespace"
    if settings.generate_unique_app_id:
        cut = f"size({name}) > {identity.MAX_NAMESPACE} ? {name}.substring(0, {identity.MAX_NAMESPACE}) : {name}"
        return f"({cut}) + {quoted(identity.UNIQUE_SUFFIX)}"
    whole = f'"yunikorn-" + {name} + "-autogen"'
    cut = f"({whole}).substring(0, {_MAX_LABEL})"
    return f'size({whole}) <= {_MAX_LABEL} ? {whole}\n: {cut}.endsWith("-") ? "" : {cut}'


def has_application_id(labels: str, annotations: str) -> str:
    """Whether a pod or a template names its application."""
    return " ||\n".join(
        f"({quoted(key)} in {found} && {found}[{quoted(key)}] != {quoted('')})"
        for found, key in (
            (labels, keys.APP_ID),
            (annotations, keys.APP_ID),
            (labels, keys.OLD_APP_ID),
            (labels, keys.SPARK_APP_ID),
        )
    )


# -- users (K162) ----------------------------------------------------------------------------------


def user_info() -> str:
    """The annotation that names the user of the request."""

    escapes = "".join(f".replace({quoted(each)}, {quoted(written)})" for each, written in _ESCAPES)
    return (
        f'"{{\\"user\\":" + [[{_USER}], has(request.userInfo.groups) ? request.userInfo.groups : []]\n'
        f'.map(names, names.map(name, "\\"" + name{escapes} + "\\"").join(","))'
        '.join(",\\"groups\\":[") + "]}"'
    )


def claimed(annotations: str) -> str:
    """The user that is claimed; "" without a claim."""
    key = quoted(keys.USER_INFO)
    return f'{key} in {annotations} ? {annotations}[{key}] : ""'


def readable_user_info(text: str, settings: Settings) -> str:
    """Whether the annotation is a readable claim within its bound."""
    return f"size({text}) <= {settings.bounds[BOUND]} && {text}.matches({quoted(READABLE)})"


def is_system_user(settings: Settings) -> str:
    """Whether the requester is a system user."""
    return _matches(settings.system_users, _USER)


def may_claim(settings: Settings) -> str:
    """Whether the requester may claim any user."""
    if settings.bypass_auth:
        return "true"
    group = _matches(settings.external_groups, "g")
    allowed = [_matches(settings.external_users, _USER)]
    if settings.trust_controllers:
        allowed.append(is_system_user(settings))
    if settings.external_groups:
        allowed.append(
            f"has(request.userInfo.groups) && request.userInfo.groups.exists(g, {group})"
        )
    return " ||\n".join(f"({each})" for each in allowed)


def unfounded_claim(settings: Settings) -> str:
    """Whether a request claims a user that it may not claim, or changes the user of a pod (K162, K164).

    The expression is self-contained, because conditions of a webhook have no variables. It never evaluates to
    an error, which would refuse the request.
    """
    in_cron_job = "spec.jobTemplate.spec.template.metadata"
    resource = "request.resource.resource"
    return (
        f'{resource} == "pods" ? ({_claims("metadata", settings, of_pod=True)})\n'
        f': {resource} == "cronjobs" ? ({_claims(in_cron_job, settings)})\n'
        f": ({_claims('spec.template.metadata', settings)})"
    )


def _claims(metadata: str, settings: Settings, *, of_pod: bool = False) -> str:
    """The same as `unfounded_claim` for annotations below this path."""
    key = quoted(keys.USER_INFO)

    def there(found: str) -> str:
        """Whether the path exists."""
        above = f"has({found}.{metadata}) && " if "." in metadata else ""
        return f"({above}has({found}.{metadata}.annotations) && {key} in {found}.{metadata}.annotations)"

    def text(found: str) -> str:
        """The text of the annotation."""
        return f"{found}.{metadata}.annotations[{key}]"

    same = f"{there('oldObject')} && {text('oldObject')} == {text('object')}"
    claims = f"{there('object')} && {text('object')} != ({user_info()}) && !({may_claim(settings)})"
    if not of_pod:
        ours = for_us(f"oldObject.{metadata.removesuffix('.metadata')}.spec", settings)
        return f'{claims} && !(request.operation == "UPDATE" && ({ours}) && {same})'
    unchanged = f"{there('object')} ? {same} : !{there('oldObject')}"
    return f'request.operation == "UPDATE" ? !({unchanged}) : {claims}'
