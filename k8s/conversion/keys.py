"""Keys that the shim reads and writes: of labels, annotations and tags.

They are those of YuniKorn, so that manifests written for it work unchanged (K40 to K46).
"""

from __future__ import annotations

from typing import Final

_DOMAIN: Final = "yunikorn.apache.org/"
_INTERNAL: Final = "internal.yunikorn.apache.org/"

#: the only partition (K6)
PARTITION: Final = "default"

# Keys of pods (K40, K41).

#: label or annotation: the application
APP_ID: Final = _DOMAIN + "app-id"
#: label: the old key for the application
OLD_APP_ID: Final = "applicationId"
#: label: Spark's key for the application
SPARK_APP_ID: Final = "spark-app-selector"
#: label or annotation: path of the queue
QUEUE: Final = _DOMAIN + "queue"
#: label: the old key for the queue
OLD_QUEUE: Final = "queue"
#: annotation: the task group of this pod
TASK_GROUP_NAME: Final = _DOMAIN + "task-group-name"
#: annotation: the task groups of the application, as JSON
TASK_GROUPS: Final = _DOMAIN + "task-groups"
#: annotation: placeholder timeout and style of the gang
POLICY_PARAMETERS: Final = _DOMAIN + "schedulingPolicyParameters"
#: annotation: user and groups, as JSON
USER_INFO: Final = _DOMAIN + "user.info"
#: label: the user, if there is no such annotation
OLD_USER_NAME: Final = _DOMAIN + "username"
#: label and its value: the scheduler's own pods, which admission leaves alone
SCHEDULER_LABEL: Final = ("app", "yunikorn")
#: annotation of a pod or a PriorityClass: ``true`` or ``false``
ALLOW_PREEMPTION: Final = _DOMAIN + "allow-preemption"
#: annotation: the pod is a placeholder
PLACEHOLDER: Final = _INTERNAL + "placeholder"
#: annotation: the old key for placeholders
OLD_PLACEHOLDER: Final = _DOMAIN + "placeholder"
#: label: the oldest key for placeholders
OLD_PLACEHOLDER_LABEL: Final = "placeholder"
#: annotation of a placeholder: hash of the definition that it was created from
DEFINITION_HASH: Final = _INTERNAL + "task-groups-hash"
#: annotation of a placeholder: number of members of its group
MIN_MEMBER: Final = _INTERNAL + "min-member"
#: annotation of a placeholder: the autoscaler may remove its node
SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
#: annotation of an originator: its gang has resumed after a soft timeout (K77)
GANG_RESUMED: Final = _INTERNAL + "gang-resumed"
#: annotation, also of a pod template: how long the pod is expected to run, in seconds or as ``1h30m`` (Q11)
EXPECTED_RUNTIME: Final = "quadriga/expected-runtime"
#: annotations, also of a pod template or a task group: the level whose domains a gang runs in, and how many of
#: its members in one (Q13)
TOPOLOGY_REQUIRED: Final = "quadriga/topology-required"
TOPOLOGY_PREFERRED: Final = "quadriga/topology-preferred"
TOPOLOGY_MEMBERS: Final = "quadriga/topology-members"
#: the same, as Kueue names them
KUEUE_REQUIRED: Final = "kueue.x-k8s.io/podset-required-topology"
KUEUE_PREFERRED: Final = "kueue.x-k8s.io/podset-preferred-topology"


# Keys of namespaces (K42).

NAMESPACE_QUOTA: Final = _DOMAIN + "namespace.quota"
NAMESPACE_GUARANTEED: Final = _DOMAIN + "namespace.guaranteed"
NAMESPACE_MAX_APPS: Final = _DOMAIN + "namespace.maxApps"
PARENT_QUEUE: Final = _DOMAIN + "parentqueue"
#: deprecated: a quota of CPU and memory
NAMESPACE_MAX_CPU: Final = _DOMAIN + "namespace.max.cpu"
NAMESPACE_MAX_MEMORY: Final = _DOMAIN + "namespace.max.memory"
#: for admission: ``true`` or ``false``
NAMESPACE_ENABLE: Final = _DOMAIN + "namespace.enableYuniKorn"
NAMESPACE_GENERATE_APP_ID: Final = _DOMAIN + "namespace.generateAppId"

# Tags of an application (K45). Those that the core reads are in quadriga.si.constants.

NAMESPACE_TAG: Final = "namespace"
PARENT_QUEUE_TAG: Final = "namespace.parentqueue"
IMAGE_PULL_SECRETS_TAG: Final = "imagePullSecrets"
#: for a gang whose manifest names a timeout: how long it may wait for its first placeholder
GANG_WAIT_TAG: Final = "gang.wait.limit"
#: for a Soft gang: its pods run one by one after that
GANG_ELASTIC_TAG: Final = "gang.elastic"
#: for a gang without placeholders: its asks are placed together (K204)
GANG_PLACEHOLDERS_TAG: Final = "gang.placeholders"

# Tags of an ask or an allocation (K46).

POD_NAMESPACE_TAG: Final = "kubernetes.io/meta/namespace"
POD_NAME_TAG: Final = "kubernetes.io/meta/podName"
#: prefix of the key of each label
LABEL_TAG: Final = "kubernetes.io/label/"
#: also of an application: seconds that are expected, and that its ``activeDeadlineSeconds`` allows (Q11)
EXPECTED_RUNTIME_TAG: Final = "expected.runtime"
RUNTIME_BOUND_TAG: Final = "expected.runtime.bound"
CREATION_TIME_TAG: Final = "creationTime"
FOREIGN_TAG: Final = "foreign"
