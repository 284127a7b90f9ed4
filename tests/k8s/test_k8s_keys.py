"""The names are those that existing manifests use (K40 to K42)."""

from __future__ import annotations

import pytest

from quadriga.k8s.conversion import keys

DOMAIN = "yunikorn.apache.org/"


@pytest.mark.parametrize(
    ("ours", "written"),
    [
        (keys.APP_ID, DOMAIN + "app-id"),
        (keys.OLD_APP_ID, "applicationId"),
        (keys.SPARK_APP_ID, "spark-app-selector"),
        (keys.QUEUE, DOMAIN + "queue"),
        (keys.OLD_QUEUE, "queue"),
        (keys.TASK_GROUP_NAME, DOMAIN + "task-group-name"),
        (keys.TASK_GROUPS, DOMAIN + "task-groups"),
        (keys.POLICY_PARAMETERS, DOMAIN + "schedulingPolicyParameters"),
        (keys.USER_INFO, DOMAIN + "user.info"),
        (keys.ALLOW_PREEMPTION, DOMAIN + "allow-preemption"),
        (keys.PLACEHOLDER, "internal.yunikorn.apache.org/placeholder"),
        (keys.OLD_PLACEHOLDER, DOMAIN + "placeholder"),
        (keys.OLD_PLACEHOLDER_LABEL, "placeholder"),
        (keys.GANG_RESUMED, "internal.yunikorn.apache.org/gang-resumed"),
        (keys.NAMESPACE_QUOTA, DOMAIN + "namespace.quota"),
        (keys.NAMESPACE_GUARANTEED, DOMAIN + "namespace.guaranteed"),
        (keys.NAMESPACE_MAX_APPS, DOMAIN + "namespace.maxApps"),
        (keys.PARENT_QUEUE, DOMAIN + "parentqueue"),
        (keys.NAMESPACE_MAX_CPU, DOMAIN + "namespace.max.cpu"),
        (keys.NAMESPACE_MAX_MEMORY, DOMAIN + "namespace.max.memory"),
        (keys.NAMESPACE_ENABLE, DOMAIN + "namespace.enableYuniKorn"),
        (keys.NAMESPACE_GENERATE_APP_ID, DOMAIN + "namespace.generateAppId"),
    ],
)
def test_k40_to_k42_the_keys(ours: str, written: str) -> None:
    assert ours == written


def test_every_key_is_exported_once() -> None:
    public = [name for name in vars(keys) if name.isupper() and not name.startswith("_")]
    assert public == keys.__all__
