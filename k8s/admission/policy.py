"""Admission as CEL policies: the API server decides by itself, without a process or a certificate (K167).

They decide what `rules` decides, except that they do not add the annotation about preemption: CEL sees no
PriorityClass, and without the annotation the scheduler looks at the class itself.

Changes are JSON patches, one for each policy: a patch is applied whole or not at all, and does not touch a list
with repeated names. See D220.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from quadriga.k8s.admission import expressions as cel
from quadriga.k8s.admission.rules import WORKLOADS, unreadable
from quadriga.k8s.conversion import keys
from quadriga.k8s.conversion.settings import Settings

#: API versions of mutating policies, the newest first: of 1.36 and of 1.34
MUTATING_VERSIONS: Final = ("v1", "v1beta1")

_GROUP: Final = "admissionregistration.k8s.io/"
_PODS: Final = "quadriga-pods"
_WORKLOADS: Final = "quadriga-workloads"
_POD_USERS: Final = "quadriga-pod-users"
_WORKLOAD_USERS: Final = "quadriga-workload-users"

Document = dict[str, Any]


def render(
    settings: Settings, own_namespace: str = "default", mutating_version: str = MUTATING_VERSIONS[0]
) -> str:
    """Return the policies and their bindings as YAML, for ``kubectl apply``.

    ``own_namespace`` is the scheduler's, which the policies leave alone like kube-system. Raises ValueError for
    an unknown version of mutating policies.
    """
    found = documents(settings, own_namespace, mutating_version)
    return yaml.dump_all(found, Dumper=_Dumper, sort_keys=False, width=110, explicit_start=True)


def documents(
    settings: Settings, own_namespace: str = "default", mutating_version: str = MUTATING_VERSIONS[0]
) -> list[Document]:
    """Return the same as data."""
    if mutating_version not in MUTATING_VERSIONS:
        raise ValueError(f"{mutating_version!r} is none of {', '.join(MUTATING_VERSIONS)}")
    pods = _Policies(settings, own_namespace, mutating_version)
    return [*pods.pods(), *pods.workloads(), *pods.pod_users(), *pods.workload_users()]


class _Policies:
    def __init__(self, settings: Settings, own_namespace: str, mutating_version: str) -> None:
        self._settings = settings
        self._own_namespace = own_namespace
        self._mutating_version = mutating_version

    # -- what is changed ---------------------------------------------------------------------------

    def pods(self) -> list[Document]:
        """Return the policy that changes pods."""
        settings = self._settings
        return self._mutating(
            _PODS,
            self._constraints({"": ("pods",)}, ["CREATE"]),
            [("scheduler", cel.for_us("object.spec", settings))],
            {
                **self._namespace_variables(),
                "labels": _texts("object.metadata", "labels"),
                "annotations": _texts("object.metadata", "annotations"),
                "generated": (
                    "variables.labelled && "
                    f"!({cel.has_application_id('variables.labels', 'variables.annotations')})\n"
                    f'? ({cel.application_id(settings)}) : ""'
                ),
                "application": (
                    f'variables.generated != "" ? variables.generated : {_or_empty(keys.APP_ID)}'
                ),
                "queue": _or_empty(keys.QUEUE),
            },
            _concatenated(
                _when("variables.ours", self._scheduler_name()),
                _when(
                    'variables.ours && !has(object.metadata.labels) && variables.generated != ""',
                    _add("/metadata/labels", "{}"),
                ),
                _label('variables.generated != ""', keys.APP_ID, "variables.generated"),
                _label(
                    f'variables.labelled && variables.application != "" && {_free(keys.OLD_APP_ID)}',
                    keys.OLD_APP_ID,
                    "variables.application",
                ),
                _label(
                    f'variables.labelled && variables.queue != "" && {_free(keys.OLD_QUEUE)}',
                    keys.OLD_QUEUE,
                    "variables.queue",
                ),
                *_user_added(
                    "object.metadata",
                    '"/metadata"',
                    "variables.annotations",
                    self._unless_named("variables.ours"),
                ),
            ),
        )

    def _scheduler_name(self) -> str:
        names = ", ".join(cel.quoted(each) for each in self._settings.scheduler_names)
        first = cel.quoted(self._settings.scheduler_names[0])
        known = f"has(object.spec.schedulerName) && object.spec.schedulerName in [{names}]"
        return f"({known} ? [] : {_add('/spec/schedulerName', first)})"

    def _unless_named(self, chosen: str) -> str:
        """Restrict to objects whose user the old label does not name, which counts if everyone may set the
        user."""
        if not self._settings.bypass_auth:
            return chosen
        return f'{chosen} && {_or_empty(keys.OLD_USER_NAME)} == ""'

    def workloads(self) -> list[Document]:
        """Return the policies that change workloads."""
        settings = self._settings
        named = cel.has_application_id("variables.labels", "variables.annotations")
        key = cel.quoted(keys.USER_INFO)
        return self._mutating(
            _WORKLOADS,
            self._workload_constraints(["CREATE", "UPDATE"]),
            [
                (
                    "not-by-a-controller",
                    'request.operation != "CREATE" || request.resource.resource != "replicasets" || '
                    f"!({cel.is_system_user(settings)})",
                )
            ],
            {
                **self._namespace_variables(),
                **_template_variables(),
                **_old_template(settings),
                "metadata": (
                    'request.resource.resource == "cronjobs" '
                    '? "/spec/jobTemplate/spec/template/metadata" : "/spec/template/metadata"'
                ),
                "chosen": (
                    "variables.ours && "
                    f"({cel.for_us('variables.template.spec', settings)}) &&\n"
                    f"(variables.known ? {key} in variables.oldAnnotations "
                    f": variables.labelled || ({named}))"
                ),
            },
            _concatenated(
                _when(
                    "variables.chosen && !has(variables.template.metadata)",
                    '[JSONPatch{op: "add", path: variables.metadata, value: {}}]',
                ),
                *_user_added(
                    "variables.template.metadata",
                    "variables.metadata",
                    "variables.annotations",
                    self._unless_named("variables.chosen"),
                    "!has(variables.template.metadata) || ",
                    f"variables.known ? variables.oldAnnotations[{key}] : ",
                ),
            ),
        )

    # -- what is denied ----------------------------------------------------------------------------

    def pod_users(self) -> list[Document]:
        """Return the policy that checks users of pods."""
        key = cel.quoted(keys.USER_INFO)
        return self._validating(
            _POD_USERS,
            self._constraints({"": ("pods",)}, ["CREATE", "UPDATE"]),
            [("scheduler", cel.for_us("object.spec", self._settings))],
            {
                **self._namespace_variables(),
                "annotations": _texts("object.metadata", "annotations"),
                "claimed": cel.claimed("variables.annotations"),
                "own": cel.user_info(),
            },
            [
                *self._claims(
                    'request.operation != "CREATE"', f"!({key} in variables.annotations)"
                ),
                {
                    "expression": (
                        'request.operation != "UPDATE" || !variables.ours ||\n'
                        f"(has(oldObject.metadata.annotations) && {key} in oldObject.metadata.annotations\n"
                        f"? {key} in variables.annotations && "
                        f"oldObject.metadata.annotations[{key}] == variables.claimed\n"
                        f": !({key} in variables.annotations))"
                    ),
                    "message": f"the annotation {keys.USER_INFO} of a pod cannot be changed",
                    "reason": "Forbidden",
                },
            ],
        )

    def workload_users(self) -> list[Document]:
        """Return the policy that checks users of workloads."""
        settings = self._settings
        key = cel.quoted(keys.USER_INFO)
        unchanged = f"{key} in variables.oldAnnotations && variables.oldAnnotations[{key}] == variables.claimed"
        return self._validating(
            _WORKLOAD_USERS,
            self._workload_constraints(["CREATE", "UPDATE"]),
            [],
            {
                **self._namespace_variables(),
                **_template_variables(),
                **_old_template(settings),
                "claimed": cel.claimed("variables.annotations"),
                "own": cel.user_info(),
                "controlled": (
                    'request.operation == "CREATE" && request.resource.resource == "replicasets"'
                    f" && ({cel.is_system_user(settings)})"
                ),
            },
            self._claims(
                f"!({cel.for_us('variables.template.spec', settings)})",
                f"!({key} in variables.annotations)",
                "variables.controlled",
                f"({unchanged})",
            ),
        )

    def _claims(self, *good: str) -> list[Document]:
        """Return a policy that accepts the claim of a user in these cases, or if the requester may make it."""
        if self._settings.bypass_auth:
            return []
        start = " ||\n".join(("!variables.ours", *good, "variables.claimed == variables.own"))
        allowed = f"({cel.may_claim(self._settings)})"
        return [
            {
                "expression": f"{start} ||\n{allowed}",
                "messageExpression": (
                    f'"user " + request.userInfo.username + " may not set the annotation '
                    f'{keys.USER_INFO}: it is set from the user of the request"'
                ),
                "message": f"the requester may not set the annotation {keys.USER_INFO}",
                "reason": "Forbidden",
            },
            {
                "expression": f"{start} ||\n{cel.readable_user_info('variables.claimed', self._settings)}",
                "message": unreadable(self._settings),
                "reason": "Forbidden",
            },
        ]

    # -- parts -------------------------------------------------------------------------------------

    def _namespace_variables(self) -> dict[str, str]:
        settings = self._settings
        return {
            "namespaceAnnotations": _texts("namespaceObject.metadata", "annotations"),
            "ours": cel.chosen(
                keys.NAMESPACE_ENABLE, settings.process_namespaces, settings.bypass_namespaces
            ),
            "labelled": "variables.ours && ("
            + cel.chosen(
                keys.NAMESPACE_GENERATE_APP_ID,
                settings.label_namespaces,
                settings.no_label_namespaces,
            )
            + ")",
        }

    def _workload_constraints(self, operations: list[str]) -> Document:
        return self._constraints(WORKLOADS, operations)

    def _constraints(
        self, resources: Mapping[str, Iterable[str]], operations: list[str]
    ) -> Document:
        left_out = list(dict.fromkeys((self._own_namespace, "kube-system")))
        name = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": left_out}
        return {
            "namespaceSelector": {"matchExpressions": [name]},
            "resourceRules": [
                {
                    "apiGroups": [group],
                    "apiVersions": ["v1"],
                    "operations": operations,
                    "resources": list(names),
                    "scope": "Namespaced",
                }
                for group, names in resources.items()
            ],
        }

    def _mutating(
        self,
        name: str,
        constraints: Document,
        conditions: list[tuple[str, str]],
        variables: Mapping[str, str],
        patch: str,
    ) -> list[Document]:
        version = _GROUP + self._mutating_version
        spec = {
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "matchConstraints": constraints,
            "matchConditions": _conditions(conditions),
            "variables": _variables(variables),
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        }
        return [
            _document(version, "MutatingAdmissionPolicy", name, spec),
            _document(version, "MutatingAdmissionPolicyBinding", name, {"policyName": name}),
        ]

    def _validating(
        self,
        name: str,
        constraints: Document,
        conditions: list[tuple[str, str]],
        variables: Mapping[str, str],
        validations: list[Document],
    ) -> list[Document]:
        if not validations:
            return []
        spec: Document = {"failurePolicy": "Fail", "matchConstraints": constraints}
        if conditions:
            spec["matchConditions"] = _conditions(conditions)
        spec |= {"variables": _variables(variables), "validations": validations}
        binding = {"policyName": name, "validationActions": ["Deny"]}
        version = _GROUP + "v1"
        return [
            _document(version, "ValidatingAdmissionPolicy", name, spec),
            _document(version, "ValidatingAdmissionPolicyBinding", name, binding),
        ]


def _document(version: str, kind: str, name: str, spec: Document) -> Document:
    metadata = {"name": name, "labels": {"app.kubernetes.io/name": "quadriga"}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _conditions(conditions: list[tuple[str, str]]) -> list[Document]:
    return [{"name": name, "expression": text} for name, text in conditions]


def _variables(variables: Mapping[str, str]) -> list[Document]:
    return [{"name": name, "expression": text} for name, text in variables.items()]


# -- expressions -----------------------------------------------------------------------------------


def _texts(metadata: str, kind: str) -> str:
    return f"has({metadata}.{kind}) ? {metadata}.{kind} : {{}}"


def _template(found: str) -> str:
    return (
        '(request.resource.resource == "cronjobs" '
        f"? {found}.spec.jobTemplate.spec.template : {found}.spec.template)"
    )


def _template_variables() -> dict[str, str]:
    has = "has(variables.template.metadata) && has(variables.template.metadata"
    return {
        "template": _template("object"),
        **{
            kind: f"{has}.{kind}) ? variables.template.metadata.{kind} : {{}}"
            for kind in ("labels", "annotations")
        },
    }


def _old_template(settings: Settings) -> dict[str, str]:
    """Return variables with the template before an UPDATE. It counts if it was for us."""
    old = "variables.oldTemplate"
    return {
        "oldTemplate": f'request.operation == "UPDATE" ? {_template("oldObject")} : variables.template',
        "known": f'request.operation == "UPDATE" && ({cel.for_us(old + ".spec", settings)})',
        "oldAnnotations": (
            f"variables.known && has({old}.metadata) && "
            f"has({old}.metadata.annotations)\n? {old}.metadata.annotations : {{}}"
        ),
    }


def _or_empty(key: str) -> str:
    name = cel.quoted(key)
    return f'({name} in variables.labels ? variables.labels[{name}] : "")'


def _free(key: str) -> str:
    return f'{_or_empty(key)} == ""'


def _concatenated(*patches: str) -> str:
    return " +\n".join(patches)


def _when(condition: str, patch: str) -> str:
    return f"({condition} ? {patch} : [])"


def _add(path: str, value: str) -> str:
    return f'[JSONPatch{{op: "add", path: {cel.quoted(path)}, value: {value}}}]'


def _at_key(parent: str, key: str, value: str) -> str:
    """Return the patch that sets one name below a path, which is an expression."""
    escaped = cel.quoted("/" + key.replace("~", "~0").replace("/", "~1"))
    return f'[JSONPatch{{op: "add", path: {parent} + {escaped}, value: {value}}}]'


def _label(condition: str, key: str, value: str) -> str:
    return _when(f"variables.ours && {condition}", _at_key('"/metadata/labels"', key, value))


def _user_added(
    metadata: str, path: str, annotations: str, chosen: str, or_if: str = "", else_of: str = ""
) -> tuple[str, str]:
    """Return the patch that adds the user to the annotations, and creates these if they are missing."""
    missing = f"({or_if}!has({metadata}.annotations))"
    absent = f"!({cel.quoted(keys.USER_INFO)} in {annotations})"
    value = f"({else_of}{cel.user_info()})"
    return (
        _when(
            f"{chosen} && {missing}",
            f'[JSONPatch{{op: "add", path: {path} + "/annotations", value: {{}}}}]',
        ),
        _when(f"{chosen} && {absent}", _at_key(f'{path} + "/annotations"', keys.USER_INFO, value)),
    )


class _Dumper(yaml.SafeDumper):
    """Keeps expressions of several lines readable, and writes no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        """Return true: write no aliases."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
