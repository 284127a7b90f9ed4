"""The names are those that existing manifests use (K40 to K42)."""

from __future__ import annotations

from quadriga.k8s.conversion import keys

#: the name here and the key, in the domain of YuniKorn
OF_YUNIKORN = """
    APP_ID app-id  QUEUE queue  TASK_GROUP_NAME task-group-name  TASK_GROUPS task-groups
    POLICY_PARAMETERS schedulingPolicyParameters  USER_INFO user.info  ALLOW_PREEMPTION allow-preemption
    OLD_PLACEHOLDER placeholder  PARENT_QUEUE parentqueue  NAMESPACE_QUOTA namespace.quota
    NAMESPACE_GUARANTEED namespace.guaranteed  NAMESPACE_MAX_APPS namespace.maxApps
    NAMESPACE_MAX_CPU namespace.max.cpu  NAMESPACE_MAX_MEMORY namespace.max.memory
    NAMESPACE_ENABLE namespace.enableYuniKorn  NAMESPACE_GENERATE_APP_ID namespace.generateAppId
""".split()
#: and as a whole
OTHERS = """
    OLD_APP_ID applicationId  SPARK_APP_ID spark-app-selector  OLD_QUEUE queue
    OLD_PLACEHOLDER_LABEL placeholder  PLACEHOLDER internal.yunikorn.apache.org/placeholder
    GANG_RESUMED internal.yunikorn.apache.org/gang-resumed
""".split()


def test_k40_to_k42_the_keys_are_those_and_each_is_exported_once() -> None:
    written = dict(zip(OTHERS[::2], OTHERS[1::2], strict=True))
    for name, key in zip(OF_YUNIKORN[::2], OF_YUNIKORN[1::2], strict=True):
        written[name] = f"yunikorn.apache.org/{key}"
    found = {name: key for name, key in vars(keys).items() if name in written}
    assert found == written
    public = [name for name in vars(keys) if name.isupper() and not name.startswith("_")]
    assert public == keys.__all__
