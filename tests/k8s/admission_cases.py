"""The decisions of section 11 as one table, for the rules, the webhook, and the policy in CEL."""

import copy
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from quadriga.k8s.admission.rules import TEMPLATES, Request, Surroundings, user_info
from quadriga.k8s.conversion.bounds import BOUNDS
from quadriga.k8s.conversion.settings import Settings
from quadriga.k8s.objects import Metadata, Namespace, PriorityClass

USER_INFO = "yunikorn.apache.org/user.info"
OLD_USER = "yunikorn.apache.org/username"
APP_ID = "yunikorn.apache.org/app-id"
QUEUE = "yunikorn.apache.org/queue"
PREEMPTION = "yunikorn.apache.org/allow-preemption"
ENABLE = "yunikorn.apache.org/namespace.enableYuniKorn"
GENERATE = "yunikorn.apache.org/namespace.generateAppId"

ALICE = '{"user":"alice","groups":["dev","system:authenticated"]}'
BOB = '{"user":"bob"}'
#: a user and groups with all of them, as JSON writes them
CONTROL_CHARACTERS = (
    r'{"user":"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f",'
    r'"groups":["\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f",'
    '"\x7f"]}'
)
CONTROLLER = "system:serviceaccount:kube-system:job-controller"

#: group and kind of each resource
KINDS = {
    "pods": ("", "Pod"),
    "replicationcontrollers": ("", "ReplicationController"),
    "deployments": ("apps", "Deployment"),
    "replicasets": ("apps", "ReplicaSet"),
    "statefulsets": ("apps", "StatefulSet"),
    "daemonsets": ("apps", "DaemonSet"),
    "jobs": ("batch", "Job"),
    "cronjobs": ("batch", "CronJob"),
}

CLAIMS = [{"name": "gpu", "resourceClaimName": "one"}]
DEVICES = {"cpu": "1", "deviceclass.resource.kubernetes.io/gpu.example.com": "1"}
#: what only the default scheduler serves
UNSUPPORTED: dict[str, dict[str, Any]] = {
    "claims": {"resourceClaims": CLAIMS},
    "workload_references": {"workloadRef": {"name": "w", "podGroup": "g"}},
    "device_classes": {
        "containers": [{"name": "x"}, {"name": "y", "resources": {"requests": DEVICES}}]
    },
    "device_classes_of_init_containers": {
        "initContainers": [{"name": "x", "resources": {"limits": DEVICES}}]
    },
}

#: what makes a pod another scheduler's before an update
ANOTHERS: dict[str, dict[str, Any]] = {"volcano": {"schedulerName": "volcano"}, **UNSUPPORTED}
NAMED_ALICE = {"annotations": {USER_INFO: ALICE}}

#: nothing is changed
SAME: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Case:
    """A request, and what becomes of it.

    ``changed`` has the schedulerName, labels and annotations that are added or changed, those of the
    template if it is a workload. ``denied`` is a part of the reason.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    scheduler: str = "default-scheduler"
    #: more of the pod's spec
    spec: Mapping[str, Any] = field(default_factory=dict)
    resource: str = "pods"
    operation: str = "CREATE"
    #: annotations before an UPDATE, and what of the spec was otherwise
    before: Mapping[str, str] | None = None
    spec_before: Mapping[str, Any] = field(default_factory=dict)
    user: str = "alice"
    groups: tuple[str, ...] = ("dev", "system:authenticated")
    namespace: str = "team"
    namespace_annotations: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    priority_class: Mapping[str, str] | None = None
    changed: Mapping[str, Any] = field(default_factory=dict)
    denied: str = ""

    def object(self, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        if self.labels:
            metadata["labels"] = dict(self.labels)
        annotations = self.annotations if annotations is None else annotations
        if annotations:
            metadata["annotations"] = dict(annotations)
        container = {"name": "main", "image": "busybox", "resources": {}}
        spec = {"containers": [container], **self.spec}
        if self.scheduler:
            spec["schedulerName"] = self.scheduler
        group, kind = KINDS[self.resource]
        head = {"apiVersion": f"{group}/v1".lstrip("/"), "kind": kind}
        if self.resource == "pods":
            return {**head, "metadata": {"name": "one", **metadata}, "spec": spec}
        inner: dict[str, Any] = {"metadata": metadata, "spec": spec}
        for name in reversed(TEMPLATES[self.resource]):
            inner = {name: inner}
        return {**head, "metadata": {"name": "one"}, **inner}

    def old(self) -> dict[str, Any] | None:
        if self.before is None:
            return None
        old = self.object(self.before)
        pod_of(old, self.resource)["spec"].update(self.spec_before)
        return old

    def request(self) -> Request:
        return Request(
            self.operation,
            self.resource,
            self.namespace,
            self.user,
            self.groups,
            self.object(),
            self.old(),
        )

    def around(self) -> Surroundings:
        priority_class = None
        if self.priority_class is not None:
            priority_class = PriorityClass(Metadata(annotations=dict(self.priority_class)))
        metadata = Metadata(name=self.namespace, annotations=dict(self.namespace_annotations))
        return Surroundings(self.read_settings(), "quadriga", Namespace(metadata), priority_class)

    def read_settings(self) -> Settings:
        return Settings(**self.settings)


def pod_of(found: Mapping[str, Any], resource: str) -> Mapping[str, Any]:
    """The pod or the template of an object."""
    for name in TEMPLATES.get(resource, ()):
        found = found[name]
    return found


def difference(
    before: Mapping[str, Any], after: Mapping[str, Any], resource: str
) -> dict[str, Any]:
    """What ``changed`` of a case says. All that it cannot say has to be the same."""
    old, new = (copy.deepcopy(pod_of(each, resource)) for each in (before, after))
    found: dict[str, Any] = {}
    schedulers = [each["spec"].pop("schedulerName", "") for each in (old, new)]
    if schedulers[0] != schedulers[1]:
        found["scheduler"] = schedulers[1]
    for kind in ("labels", "annotations"):
        mappings = [each.setdefault("metadata", {}).pop(kind, None) or {} for each in (old, new)]
        assert mappings[0].keys() <= mappings[1].keys()
        added = {key: value for key, value in mappings[1].items() if mappings[0].get(key) != value}
        if added:
            found[kind] = added
    assert old == new
    return found


def _made(name: str = "yunikorn-team-autogen", **more: Any) -> dict[str, Any]:
    """An ordinary pod of alice, in an ordinary namespace; ``name`` is that of its application."""
    return {
        "scheduler": "yunikorn",
        "labels": {APP_ID: name, "applicationId": name},
        "annotations": {USER_INFO: ALICE, PREEMPTION: "true"},
        **more,
    }


ONLY_SCHEDULED = {"scheduler": "yunikorn", "annotations": {USER_INFO: ALICE}}
NAMED = _made(labels={})
NAMED.pop("labels")
OURS = {key: value for key, value in _made().items() if key != "scheduler"}
#: what is added where a claim is kept
KEPT = _made(annotations={PREEMPTION: "true"})
UNREADABLE = "annotation yunikorn.apache.org/user.info"
FIXED = "cannot be changed"

BYPASS = {"bypass_auth": True}
UNIQUE = {"generate_unique_app_id": True}
TWO_NAMES = {"scheduler_names": ("first", "second")}
UNLABELLED = {GENERATE: "false"}


def _claim(name: str, text: str = BOB, **more: Any) -> Case:
    """A pod or workload that says whose it is."""
    return Case(name, annotations={USER_INFO: text}, **more)


def _update(name: str, before: str | None, after: str | None, **more: Any) -> Case:
    """The claim before and after an UPDATE."""
    old, new = ({} if each is None else {USER_INFO: each} for each in (before, after))
    return Case(name, operation="UPDATE", before=old, annotations=new, **more)


PODS = [
    # schedulers and the scheduler's own pods
    Case("k159_ordinary_pod", changed=_made()),
    Case("k159_no_scheduler_at_all", scheduler="", changed=_made()),
    Case("k159_ours_already", scheduler="yunikorn", changed=OURS),
    Case("k159_a_third_scheduler_is_left_alone", scheduler="volcano"),
    _claim("k159_a_third_scheduler_may_have_any_annotation", scheduler="volcano"),
    Case("k159_another_of_our_names_is_kept", scheduler="second", settings=TWO_NAMES, changed=OURS),
    Case("k159_the_first_of_our_names_is_it", settings=TWO_NAMES, changed=_made(scheduler="first")),
    *(
        Case(f"k207_{name}_are_the_default_schedulers", spec=spec, scheduler=scheduler)
        for name, spec in UNSUPPORTED.items()
        for scheduler in ("", "default-scheduler")
    ),
    *(
        Case(f"k207_{name}_of_a_pod_that_names_us", spec=spec, scheduler="yunikorn", changed=OURS)
        for name, spec in UNSUPPORTED.items()
    ),
    Case("k207_no_claims_are_none", spec={"resourceClaims": []}, changed=_made()),
    Case("k159_the_schedulers_own_pods", labels={"app": "yunikorn"}, namespace="quadriga"),
    Case("k159_the_schedulers_own_label_elsewhere", labels={"app": "yunikorn"}, changed=_made()),
    Case("k159_another_app", labels={"app": "web"}, changed=_made()),
    _claim(
        "k159_the_schedulers_label_claims_no_user", labels={"app": "yunikorn"}, denied="user alice"
    ),
    Case("k159_the_schedulers_own_namespace", namespace="quadriga"),
    _claim(
        "k159_a_bypassed_namespace_is_left_alone_before_users_are_checked", namespace="kube-system"
    ),
    # namespaces
    Case("k160_process_matches_1", settings={"process_namespaces": ("^x$", "ea")}, changed=_made()),
    Case("k160_process_matches_none", settings={"process_namespaces": ("^x$",)}),
    Case(
        "k160_bypass_wins",
        settings={"process_namespaces": ("team",), "bypass_namespaces": ("^te",)},
    ),
    Case("k160_patterns_are_unanchored", settings={"bypass_namespaces": ("ea",)}),
    Case(
        "k160_annotation_true_wins",
        settings={"bypass_namespaces": ("team",)},
        namespace_annotations={ENABLE: "true"},
        changed=_made(),
    ),
    Case(
        "k160_annotation_false_wins",
        settings={"process_namespaces": ("team",)},
        namespace_annotations={ENABLE: "false"},
    ),
    Case("k160_annotation_that_is_neither", namespace_annotations={ENABLE: "no"}, changed=_made()),
    Case("k160_unlabelled", settings={"no_label_namespaces": ("^team$",)}, changed=ONLY_SCHEDULED),
    Case("k160_label_pattern", settings={"label_namespaces": ("^other$",)}, changed=ONLY_SCHEDULED),
    Case(
        "k160_label_annotation_true",
        settings={"no_label_namespaces": ("team",)},
        namespace_annotations={GENERATE: "true"},
        changed=_made(),
    ),
    Case("k160_label_annotation_false", namespace_annotations=UNLABELLED, changed=ONLY_SCHEDULED),
    # application and queue
    Case("k161_label_app_id", labels={APP_ID: "a"}, changed=_made(labels={"applicationId": "a"})),
    Case("k161_annotation_app_id", annotations={APP_ID: "a"}, changed=NAMED),
    Case("k161_old_label", labels={"applicationId": "a"}, changed=NAMED),
    Case("k161_label_of_spark", labels={"spark-app-selector": "a"}, changed=NAMED),
    Case("k161_empty_label_is_none", labels={APP_ID: ""}, changed=_made()),
    Case(
        "k161_queue_is_copied",
        labels={APP_ID: "a", QUEUE: "root.x"},
        changed=_made(labels={"applicationId": "a", "queue": "root.x"}),
    ),
    Case(
        "k161_old_labels_are_kept",
        labels={APP_ID: "a", "applicationId": "b", QUEUE: "root.x", "queue": "mine"},
        changed=NAMED,
    ),
    Case("k161_unique", settings=UNIQUE, changed=_made("team-uniqueautogen")),
    Case(
        "k161_unique_and_a_long_namespace",
        namespace="n" * 40,
        settings=UNIQUE,
        changed=_made("n" * 26 + "-uniqueautogen"),
    ),
    Case("k161_long_namespace", namespace="n" * 60, changed=_made("yunikorn-" + "n" * 54)),
    Case("k161_no_label_where_it_would_be_wrong", namespace="n" * 53, changed=NAMED),
    Case(
        "k161_preemption_of_a_protected_class",
        priority_class={PREEMPTION: "false"},
        changed=_made(annotations={USER_INFO: ALICE, PREEMPTION: "false"}),
    ),
    Case("k161_preemption_of_a_class", priority_class={}, changed=_made()),
    Case(
        "k161_own_preemption_wins",
        annotations={PREEMPTION: "false"},
        changed=_made(annotations={USER_INFO: ALICE}),
    ),
    Case("k161_unreadable_preemption_is_replaced", annotations={PREEMPTION: "no"}, changed=_made()),
    # users
    _claim("k162_a_claim", denied="user alice"),
    _claim("k162_an_empty_claim", "", denied="user alice"),
    _claim("k162_a_claim_of_a_controller", user=CONTROLLER, changed=KEPT),
    _claim(
        "k162_controllers_are_not_trusted",
        user=CONTROLLER,
        settings={"trust_controllers": False},
        denied=f"user {CONTROLLER}",
    ),
    _claim(
        "k162_a_service_account_elsewhere",
        user="system:serviceaccount:team:job-controller",
        denied="user system",
    ),
    _claim("k162_an_external_user", settings={"external_users": ("^al",)}, changed=KEPT),
    _claim("k162_an_external_group", settings={"external_groups": ("^x", "^dev$")}, changed=KEPT),
    _claim("k162_other_ext_groups", settings={"external_groups": ("^ops$",)}, denied="user alice"),
    _claim("k162_no_groups", groups=(), settings={"external_groups": (".*",)}, denied="user alice"),
    _claim("k162_allowed_but_no_json", "bob", user=CONTROLLER, denied=UNREADABLE),
    _claim("k208_allowed_but_a_wrong_escape", '{"user":"\\q"}', user=CONTROLLER, denied=UNREADABLE),
    _claim("k208_allowed_but_bare_newline", '{"user":"a\nb"}', user=CONTROLLER, denied=UNREADABLE),
    _claim(
        "k208_allowed_but_a_further_field",
        '{"user":"bob","uid":"1"}',
        user=CONTROLLER,
        denied=UNREADABLE,
    ),
    _claim(
        "k208_allowed_but_too_long",
        json.dumps({"user": "b" * 16_384}),
        user=CONTROLLER,
        denied="of at most 16384 characters",
    ),
    _claim(
        "k208_the_bound_of_a_claim_is_that_of_the_shim",
        BOB,
        user=CONTROLLER,
        settings={"bounds": {**BOUNDS, "podUser": 13}},
        denied="of at most 13 characters",
    ),
    _claim("k162_allowed_but_empty", "", user=CONTROLLER, denied=UNREADABLE),
    _claim("k162_allowed_but_no_object", "[1]", user=CONTROLLER, denied=UNREADABLE),
    _claim(
        "k162_allowed_but_groups_are_no_list",
        '{"user":"bob","groups":"x"}',
        user=CONTROLLER,
        denied=UNREADABLE,
    ),
    _claim(
        "k162_allowed_with_groups",
        '{ "user" : "b\\"o", "groups" : [ "x" , "y" ] }',
        user=CONTROLLER,
        changed=KEPT,
    ),
    _claim("k162_bypass_keeps_a_claim", settings=BYPASS, changed=KEPT),
    _claim("k162_bypass_keeps_what_is_no_json", "bob", settings=BYPASS, changed=KEPT),
    Case("k162_bypass_adds_what_is_absent", settings=BYPASS, changed=_made()),
    Case(
        "k162_bypass_leaves_the_old_label_its_meaning",
        labels={APP_ID: "a", OLD_USER: "bob"},
        settings=BYPASS,
        changed={
            "scheduler": "yunikorn",
            "labels": {"applicationId": "a"},
            "annotations": {PREEMPTION: "true"},
        },
    ),
    Case(
        "k162_the_old_label_does_not_hide_the_user",
        labels={APP_ID: "a", OLD_USER: "bob"},
        changed=_made(labels={"applicationId": "a"}),
    ),
    Case(
        "k162_quotes_and_backslashes_in_names",
        user='a"\\b',
        groups=('g"', "h\\"),
        changed=_made(
            annotations={
                USER_INFO: '{"user":"a\\"\\\\b","groups":["g\\"","h\\\\"]}',
                PREEMPTION: "true",
            }
        ),
    ),
    Case(
        "k208_control_characters_in_names",
        user="".join(map(chr, range(0x10))),
        groups=("".join(map(chr, range(0x10, 0x20))), "\x7f"),
        changed=_made(annotations={USER_INFO: CONTROL_CHARACTERS, PREEMPTION: "true"}),
    ),
    Case(
        "k162_a_user_without_groups",
        groups=(),
        changed=_made(annotations={USER_INFO: '{"user":"alice","groups":[]}', PREEMPTION: "true"}),
    ),
    _claim("k208_the_truth_may_be_claimed", ALICE, changed=KEPT),
    # updates
    _update("k164_nothing_changes", BOB, BOB),
    Case(
        "k164_other_annotations_change",
        operation="UPDATE",
        before={USER_INFO: BOB},
        annotations={USER_INFO: BOB, "x": "y"},
    ),
    _update("k164_no_annotation", None, None),
    _update("k164_changed", ALICE, BOB, denied=FIXED),
    _update("k164_changed_by_a_controller", ALICE, BOB, user=CONTROLLER, denied=FIXED),
    _update("k164_added", None, ALICE, denied=FIXED),
    _update("k164_added_though_empty", None, "", denied=FIXED),
    _update("k164_removed", ALICE, None, denied=FIXED),
    _update("k164_in_another_namespace", ALICE, None, namespace="kube-system"),
    _update("k164_of_a_third_scheduler", ALICE, None, scheduler="volcano"),
]

WITH_USER = {"annotations": {USER_INFO: ALICE}}
_DEPLOYMENTS = [
    Case("k163_labelled", changed=WITH_USER),
    Case("k163_not_labelled", namespace_annotations=UNLABELLED),
    Case(
        "k163_not_labelled_with_app_id",
        namespace_annotations=UNLABELLED,
        labels={APP_ID: "a"},
        changed=WITH_USER,
    ),
    Case(
        "k163_not_labelled_with_annotated_app_id",
        namespace_annotations=UNLABELLED,
        annotations={APP_ID: "a"},
        changed=WITH_USER,
    ),
    _claim("k163_another_namespace", namespace="kube-system"),
    Case("k163_a_third_scheduler", scheduler="volcano"),
    _claim("k163_a_claim", denied="user alice"),
    _claim(
        "k163_a_claim_where_pods_are_not_labelled",
        namespace_annotations=UNLABELLED,
        denied="user alice",
    ),
    _claim("k163_a_good_claim", settings={"external_users": ("alice",)}),
    _claim("k163_allowed_but_no_json", "bob", user=CONTROLLER, denied=UNREADABLE),
    _claim("k163_bypass", "bob", settings=BYPASS),
    Case("k163_bypass_leaves_the_old_label_its_meaning", labels={OLD_USER: "bob"}, settings=BYPASS),
    _update("k163_update_changes_nothing", None, None),
    _update("k163_update_keeps_the_claim", BOB, BOB),
    _update("k208_update_drops_the_claim", BOB, None, changed={"annotations": {USER_INFO: BOB}}),
    _update(
        "k208_update_drops_the_claim_of_a_labelled_one",
        BOB,
        None,
        labels={OLD_USER: "bob"},
        settings=BYPASS,
    ),
    *(
        Case(f"k207_{name}_are_the_default_schedulers", spec=spec, scheduler=scheduler)
        for name, spec in UNSUPPORTED.items()
        for scheduler in ("", "default-scheduler")
    ),
    _update("k163_update_with_another_claim", ALICE, BOB, denied="user alice"),
    _update("k163_update_with_a_good_claim", None, BOB, user=CONTROLLER),
    _update("k208_update_of_a_second_user_with_the_truth", BOB, ALICE),
    _update("k208_update_of_a_second_user_with_the_first_ones_claim", BOB, BOB, user="carol"),
    *(
        _update(f"k208_{kept}_of_{name}_vouches_for_nobody", BOB, new, spec_before=spec, **more)
        for name, spec in ANOTHERS.items()
        for kept, new, more in (
            ("a_claim_that_is_kept", BOB, {"denied": "user alice"}),
            ("one_that_is_left_out", None, {"labels": {APP_ID: "a"}, "changed": NAMED_ALICE}),
        )
    ),
]
WORKLOADS = [
    replace(case, resource=resource, name=f"{case.name}_{resource}")
    for resource in TEMPLATES
    for case in _DEPLOYMENTS
    if (resource, case.user) != ("replicasets", CONTROLLER)
] + [
    Case("k163_replicasets_of_a_controller", resource="replicasets", user=CONTROLLER),
    _claim(
        "k163_replicasets_of_a_controller_with_a_claim",
        resource="replicasets",
        user=CONTROLLER,
        settings={"trust_controllers": False},
    ),
    Case(
        "k163_jobs_of_a_controller",
        resource="jobs",
        user=CONTROLLER,
        groups=(),
        changed={"annotations": {USER_INFO: user_info(CONTROLLER, ())}},
    ),
]

CASES = [*PODS, *WORKLOADS]


# -- one reading of a claim in both ways (K208) ----------------------------------------------------

#: claims, before and after an UPDATE
TEXTS = {
    "none": None,
    "the_truth": ALICE,
    "bobs": BOB,
    "a_wrong_escape": r'{"user":"\q"}',
    "a_further_field": '{"user":"bob","uid":"7"}',
    "a_long_one": json.dumps({"user": "bob", "groups": ["g" * 20_000]}),
}
USERS = {"alice": "alice", "a_second_user": "carol", "a_controller": CONTROLLER}
#: labels, and the settings with which they mean something; a row has the next one
MARKS: list[dict[str, Any]] = [
    {},
    {"labels": {APP_ID: "a", QUEUE: "root.x"}},
    {"labels": {APP_ID: "a"}, "namespace_annotations": UNLABELLED},
    {"labels": {OLD_USER: "bob"}, "settings": BYPASS},
    {"labels": {OLD_USER: "bob"}, "scheduler": "yunikorn"},
    {"spec": {"resourceClaims": CLAIMS}},
    {"namespace_annotations": UNLABELLED},
]


def _rows() -> Iterator[Case]:
    """Kinds, operations, claims and users in all combinations. Policies treat all workloads but CronJobs alike."""
    marks = itertools.cycle(MARKS)
    befores = {"create": None, "update_of_none": {}, "update_of_bobs": {USER_INFO: BOB}}
    for parts in itertools.product(("pods", "replicasets", "cronjobs"), befores, TEXTS, USERS):
        resource, operation, text, user = parts
        claim, before = TEXTS[text], befores[operation]
        yield Case(
            "_".join(parts),
            annotations={} if claim is None else {USER_INFO: claim},
            resource=resource,
            operation="CREATE" if before is None else "UPDATE",
            before=before,
            user=USERS[user],
            **next(marks),
        )


ROWS = list(_rows())
