"""What a configuration may say: one test for each rule of sections 2.2 and 5.1."""

import hashlib
import textwrap
from collections.abc import Callable

import pytest

from quadriga.core.config import (
    ACL,
    DEFAULT_CONFIGURATION,
    ChildTemplate,
    ConfigError,
    LimitConfig,
    PartitionConfig,
    PlacementFilter,
    PlacementRule,
    QueueConfig,
    checksum,
    load,
    partition_document,
)

P = "partitions[0]"
R = f"{P}.queues[0]"
Q = f"{R}.queues[0]"
L = f"{Q}.limits"
RULE = f"{P}.placementrules[0]"


def partition(text: str) -> PartitionConfig:
    (only,) = load("partitions:\n-\n" + textwrap.indent(textwrap.dedent(text), "  ")).partitions
    return only


def root(text: str) -> QueueConfig:
    body = textwrap.indent(textwrap.dedent(text), "  ")
    return partition("queues:\n- name: root\n" + body).root


def queue(keys: str) -> QueueConfig:
    (child,) = root(f"queues: [{{name: a, {keys}}}]").children
    return child


def quota(guaranteed: str = "", maximum: str = "", below: str = "") -> QueueConfig:
    return queue(f"resources: {{guaranteed: {guaranteed}, max: {maximum}}}, queues: [{below}]")


def limited(limits: str) -> QueueConfig:
    return queue(f"maxapplications: 9, resources: {{max: {{memory: 50}}}}, limits: {limits}")


def rules(text: str) -> tuple[PlacementRule, ...]:
    return partition(
        f"""
        queues:
        - name: root
          queues: [{{name: leaf}}, {{name: parent, parent: true, queues: [{{name: x}}]}}]
        placementrules: {text}
        """
    ).placement_rules


def weights(text: str) -> PartitionConfig:
    return partition(f"queues: []\nnodesortpolicy: {{resourceweights: {{{text}}}}}")


def refused(build: object, *text: str) -> list[tuple[str, str]]:
    assert callable(build)
    with pytest.raises(ConfigError) as caught:
        build(*text)
    return [(problem.path, problem.reason) for problem in caught.value.problems]


# -- the whole ---------------------------------------------------------------


def test_the_default_configuration() -> None:
    configuration = load(DEFAULT_CONFIGURATION)
    assert configuration.partitions == (
        PartitionConfig(
            name="default",
            root=QueueConfig("root", "root", parent=True, submit_acl=ACL(everyone=True)),
            placement_rules=(PlacementRule("tag", "namespace", create=True),),
            limits=(),
            preemption_enabled=True,
            quota_preemption_enabled=False,
            node_sort_policy="bestfit",
            resource_weights={"vcore": 1.0, "memory": 1.0},
            user_group_resolver="os",
        ),
    )
    assert not configuration.warnings


def test_the_checksum_is_of_the_text_without_a_checksum() -> None:
    digest = hashlib.sha256(DEFAULT_CONFIGURATION.encode()).hexdigest().upper()
    assert load(DEFAULT_CONFIGURATION).checksum == digest
    with_checksum = f"{DEFAULT_CONFIGURATION}checksum: {digest}"
    assert load(with_checksum).checksum == digest
    assert checksum(with_checksum) == digest
    assert checksum(f"{DEFAULT_CONFIGURATION}checksum: 12") != digest


def test_all_problems_are_shown_at_once_in_the_order_of_the_text() -> None:
    text = """
        partitions:
        - name: default
          queues:
          - name: root
            colour: red
            queues:
            - name: a b
              submitacl: x y z
              resources:
                max: {memory: 1K, vcore: 1}
                guaranteed: {vcore: 2}
              limits:
              - users: [1up]
                maxapplications: some
            - {}
          nodesortpolicy: {type: random}
        - name: DEFAULT
        """
    with pytest.raises(ConfigError) as caught:
        load(textwrap.dedent(text))
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [
        (6, f"{R}.colour"),
        (8, f"{Q}.name"),
        (9, f"{Q}.submitacl"),
        (11, f"{Q}.resources.max.memory"),
        (12, f"{Q}.resources.guaranteed"),
        (14, f"{Q}.limits[0].users[0]"),
        (15, f"{Q}.limits[0].maxapplications"),
        (16, f"{R}.queues[1].name"),
        (17, f"{P}.nodesortpolicy.type"),
        (18, "partitions[1]"),
        (18, "partitions[1]"),
    ]
    message = str(caught.value)
    assert message.startswith("the queue configuration has 11 problems:\n")
    assert f"\n  {R}.colour (line 6): unknown key" in message
    assert len(message.splitlines()) == 12


# -- texts with one problem --------------------------------------------------

C = "[{name: c, resources: {guaranteed: {memory: 3}}}]"
#: b has no guaranteed resources of its own and passes up what its children have
BELOW = f"{{name: b, queues: {C}}}, {{name: d, resources: {{guaranteed: {{memory: 2}}}}}}"
DEEP = "{name: b, queues: [{name: c, resources: {max: {memory: %s, gpu: 4}}}]}"
APPS = "maxapplications: {}\nqueues: [{{name: a, maxapplications: {}}}]"
ANN = "limits: [{users: [ann], maxapplications: 5}]\n"
NOT_LARGER = "parent maxApplications must be larger than child maxApplications"
NO_RESOURCES = "root queue must not have resource limits set"
TWICE = "{users: ['*'], maxapplications: 1}, {users: [a], maxapplications: 1}"
# fmt: off
PROBLEMS: list[tuple[Callable[..., object], str | tuple[str, ...], str, str]] = [
    # partitions
    (load, "partitions: [{queues: []}, {name: Default, queues: []}]", "partitions[1]", "already"),
    (load, "partitions: [{name: default}]", P, "queue config is not set"),
    (partition, "queues: []\npreemption: {enabled: off}", f"{P}.preemption.enabled", "true or false"),
    (partition, "queues: []\nnodesortpolicy: {type: best}", f"{P}.nodesortpolicy.type",
     "'best' is neither fair nor binpacking nor bestfit"),
    (weights, "gpu: -1.0", f"{P}.nodesortpolicy.resourceweights.gpu", "a weight must not be negative"),
    *((partition, f"queues: []\ndevices: [{{name: gpu}}, {{name: {name}}}]", f"{P}.devices[1]", reason)
      for name, reason in (("gpu", "declared already"), ("vcore", "vcore is not counted"), ("''", "needs the name"))),
    *((weights, f"gpu: {weight}", f"{P}.nodesortpolicy.resourceweights.gpu", "a finite number")
      for weight in (".inf", ".nan", "1e999", "'1'", "heavy", "")),
    (partition, "queues: []\ntopology: [rack, rack]", f"{P}.topology[1]", "a level already"),
    (partition, "queues: []\ntopology: [a, '']", f"{P}.topology[1]", "1 to 317 characters"),
    (partition, f"queues: []\ntopology: [{'x' * 318}]", f"{P}.topology[0]", "not of 318"),
    (partition, "queues: []\ntopology: [a, b, c, d, e, f, g, h, i]", f"{P}.topology", "9 levels"),
    (partition, "queues: []\nusergroupresolver: {type: nis}", f"{P}.usergroupresolver.type", "nis"),
    # the tree
    (partition, "queues: [{name: a}, {name: 'b!'}]", f"{P}.queues[1].name", "'b!'"),  # below an inserted root
    *((root, f"resources: {{{kind}: {amounts}}}", f"{R}.resources", NO_RESOURCES)
      for kind in ("max", "guaranteed") for amounts in ("{memory: 1}", "{memory: 0}", "{}")),
    *((root, f'queues: [{{name: "{bad}"}}]', f"{Q}.name", "is not a queue name")
      for bad in ("", "x" * 65, "a.b", "a b", "\u00e9", "$", "a\\n")),
    (root, "queues: [{parent: true}]", f"{Q}.name", "is not a queue name"),
    (root, "queues: [{name: a}, {name: A}]", f"{R}.queues[1].name", "already"),
    (root, "adminacl: a b c", f"{R}.adminacl", "multiple spaces found in ACL"),
    # quotas
    *((quota, ("", f"{{memory: {amount}}}"), f"{Q}.resources.max.memory", "")
      for amount in ("1K", "1.5", "-1", "10m", "''", "{}", "[1]", "9223372036854775808")),
    (quota, ("{vcore: 3}", "{vcore: 2}"), f"{Q}.resources.guaranteed", "3000 > 2000"),
    (quota, ("{vcore: 3}", "{vcore: 0}"), f"{Q}.resources.guaranteed", "3000 > 0"),
    (quota, ("", "{memory: 5}", DEEP % 6), f"{Q}.queues[0].queues[0].resources.max", "memory 6 > 5"),
    (quota, ("{memory: 4}", "{memory: 9}", BELOW), f"{Q}.resources.guaranteed", "memory 5 > 4"),
    (quota, ("", "{memory: 4}", BELOW), f"{Q}.resources.max", "memory 5 > 4"),
    (root, APPS.format(5, 6), f"{Q}.maxapplications", NOT_LARGER),
    (root, APPS.format(5, 0), f"{Q}.maxapplications", NOT_LARGER),
    (root, "childtemplate: {resources: {max: {memory: lots}}}", f"{R}.childtemplate.resources.max.memory", "'lots'"),
    # a template on a leaf has no effect, but has to be one
    (queue, "childtemplate: some text", f"{Q}.childtemplate", "a mapping is expected"),
    (queue, "childtemplate: [1]", f"{Q}.childtemplate", "a mapping is expected"),
    (queue, "childtemplate: {max: {}}", f"{Q}.childtemplate.max", "unknown key"),
    (queue, "childtemplate: {resources: {max: {memory: lots}}}", f"{Q}.childtemplate.resources.max.memory", "'lots'"),
    # limits
    (limited, "[{maxapplications: 1}]", f"{L}[0]", "empty user and group lists"),
    (limited, "[{users: [a b], maxapplications: 1}]", f"{L}[0].users[0]", "not a valid user name"),
    (limited, "[{groups: [a, g$], maxapplications: 1}]", f"{L}[0].groups[1]", "not a valid group name"),
    (limited, "[{users: [a, a], maxapplications: 1}]", f"{L}[0].users[1]", "already"),
    (limited, "[{groups: [a], maxapplications: 1}, {groups: [a], maxapplications: 1}]", f"{L}[1].groups[0]", "already"),
    (limited, f"[{TWICE}]", f"{L}[1].users[0]", "after the wildcard"),
    (limited, "[{groups: ['*', a], maxapplications: 1}]", f"{L}[0].groups[1]", "after the wildcard"),
    (limited, "[{groups: ['*'], maxapplications: 1}]", f"{L}[0].groups", "the only group"),
    (limited, "[{users: [a]}]", f"{L}[0]", "neither maxresources nor maxapplications"),
    (limited, "[{users: [a], maxresources: 5}]", f"{L}[0].maxresources", "a mapping is expected"),
    (limited, "[{users: [a], maxapplications: 0}]", f"{L}[0]", "neither maxresources nor"),
    (limited, "[{users: [a], maxresources: {}}]", f"{L}[0]", "neither maxresources nor"),
    (limited, "[{users: [a], maxapplications: 1, maxresources: {memory: 0}}]", f"{L}[0].maxresources",
     "all amounts are zero"),
    (limited, "[{users: [a], maxresources: {memory: 51}}]", f"{L}[0].maxresources", "memory 51 > 50"),
    (limited, "[{users: [a], maxapplications: 10}]", f"{L}[0].maxapplications", "10 > 9"),
    # whatever the quota is of a name that comes after the wildcard
    *((queue, f"limits: [{{{kind}: [first], maxapplications: 1}}, {{{kind}: ['*'], maxapplications: 2}},"
              f" {{{kind}: [late], maxapplications: {count}}}]", f"{L}[2].{kind}[0]", "after the wildcard")
      for kind in ("users", "groups") for count in (2, 3)),
    # a number of applications above that of a queue above
    *((queue, f"limits: [{{{above}, maxapplications: 5}}], "
              f"queues: [{{name: b, limits: [{{{own}, maxapplications: 6}}]}}]",
       f"{Q}.queues[0].limits[0].maxapplications", "6 > 5")
      for above, own in (
          ("users: [ann]", "users: [ann]"), ("users: ['*']", "users: [ann]"), ("groups: [g]", "groups: [g]"),
          ("users: [ann], maxresources: {memory: 1}", "users: [ann]"),
          ("users: [ann]", "users: [ann], maxresources: {memory: 1}"))),
    (partition, f"{ANN}queues: [{{name: root, limits: [{{users: [ann], maxapplications: 6}}]}}]", f"{P}.limits",
     "partition limits and root queue limits are not equivalent"),
    (partition, "limits: [{users: [1], maxapplications: 5}]\nqueues: [{name: root}]", f"{P}.limits[0].users[0]",
     "not a valid user name"),
    # placement rules
    (rules, "[{}]", f"{RULE}.name", "not a rule name"),
    (rules, "[{name: 1st}]", f"{RULE}.name", "not a rule name"),
    (rules, "[{name: user, parent: {name: a-b}}]", f"{RULE}.parent.name", "not a rule name"),
    (rules, "[{name: user, create: maybe}]", f"{RULE}.create", "true or false"),
    (rules, "[{name: user, filter: {type: forbid}}]", f"{RULE}.filter.type", "neither allow nor deny"),
    (rules, "[{name: user, filter: {users: [a!b]}}]", f"{RULE}.filter.users", "nor a regular"),
    (rules, "[{name: user, filter: {groups: ['a(']}}]", f"{RULE}.filter.groups", "nor a regular"),
    (rules, "[{name: fixed, value: root.parent}]", RULE, "(root.parent) which is not a leaf"),
    (rules, "[{name: fixed, value: root}]", RULE, "(root) which is not a leaf"),
    (rules, "[{name: fixed, value: root.none}]", RULE, "non-existing queue (root.none)"),
    (rules, "[{name: fixed, value: none}]", RULE, "non-existing queue (root.none)"),  # below the root
    (rules, "[{name: fixed, value: root.parent.none}]", RULE, "non-existing queue (root.parent.none)"),
    (rules, "[{name: fixed, value: Root.Leaf.x, create: true}]", RULE, "root.leaf above it is a leaf"),
    (rules, "[{name: user, parent: {name: fixed, value: root.leaf}}]", RULE, "(root.leaf) which is not a parent"),
    (rules, "[{name: fixed, value: root.x, parent: {name: fixed, value: root.parent}}]", RULE, "only the outermost"),
]
# fmt: on


@pytest.mark.parametrize(("build", "text", "path", "reason"), PROBLEMS)
def test_one_problem(
    build: Callable[..., object], text: str | tuple[str, ...], path: str, reason: str
) -> None:
    ((found_path, found_reason),) = refused(build, *([text] if isinstance(text, str) else text))
    assert found_path == path
    assert reason in found_reason


def test_several_problems() -> None:
    inherited = ("", "{memory: 4}", f"{{name: x, queues: [{BELOW}]}}")
    found = {path for path, _ in refused(quota, *inherited)}
    assert found == {f"{Q}.resources.max", f"{Q}.queues[0]"}
    assert refused(limited, "[{users: ann, maxapplications: 1}]")[0] == (
        *(f"{L}[0].users", "a list is expected, not the text 'ann'"),
    )
    assert refused(limited, "[7]")[0][0] == f"{L}[0]"
    # each negative weight is a problem whatever the others are
    for text, negative in (
        ("vcore: -1, memory: 0.5, gpu: 5", ["vcore"]),
        ("vcore: -1, memory: -2, gpu: 2", ["vcore", "memory"]),
    ):
        assert [path.rpartition(".")[2] for path, _ in refused(weights, text)] == negative


# -- partitions --------------------------------------------------------------


def test_partition_names_differ_by_more_than_case() -> None:
    parts = load("partitions: [{queues: []}, {name: GPU, queues: []}]").partitions
    assert [part.name for part in parts] == ["default", "GPU"]
    assert parts[0].root.children == ()


def test_policies_of_a_partition() -> None:
    part = partition(
        """
        queues: []
        preemption: {enabled: false, quotapreemptionenabled: true}
        nodesortpolicy: {type: binpacking, resourceweights: {vcore: 2, gpu: 0.5, x: 0}}
        usergroupresolver: {type: ldap}
        topology: [zone, rack]
        """
    )
    assert (part.preemption_enabled, part.quota_preemption_enabled) == (False, True)
    assert part.node_sort_policy == "binpacking"
    assert part.resource_weights == {"vcore": 2.0, "gpu": 0.5, "x": 0.0}
    assert (part.user_group_resolver, part.topology) == ("ldap", ("zone", "rack"))
    assert partition("queues: []\nnodesortpolicy: {type: bestfit}").node_sort_policy == "bestfit"


@pytest.mark.parametrize(
    ("declared", "devices"),
    [
        ("", ["amd.com/gpu", "gpu", "nvidia.com/gpu", "x.io/gpu"]),
        ("devices: []", []),
        ("devices: [{name: fpga}, {name: gpu}]", ["fpga", "gpu"]),
    ],
)
def test_devices_are_those_declared_or_the_well_known_ones(
    declared: str, devices: list[str]
) -> None:
    part = partition(f"queues: []\n{declared}")
    names = ["amd.com/gpu", "fpga", "gpu", "mygpu", "nvidia.com/gpu", "vcore", "x.io/gpu"]
    assert [name for name in names if part.is_device(name)] == devices
    shown = partition_document(part)
    assert ("devices" in shown) == bool(declared)


def test_a_key_of_the_past_is_a_warning() -> None:
    (warning,) = load("partitions: [{queues: [], statedumpfilepath: x}]").warnings
    assert warning.path == f"{P}.statedumpfilepath"


# -- the tree ----------------------------------------------------------------


@pytest.mark.parametrize("tops", ["[]", "[{name: a}]", "[{name: root}, {name: a}]"])
def test_a_root_is_inserted_unless_it_is_the_only_top_queue(tops: str) -> None:
    top = partition(f"queues: {tops}").root
    assert (top.name, top.path, top.parent) == ("root", "root", True)
    assert all(child.path == f"root.{child.name}" for child in top.children)
    assert len(top.children) == tops.count("name")


def test_a_root_that_is_there_is_used() -> None:
    top = partition("queues: [{name: ROOT, maxapplications: 3, resources: {max: }}]").root
    assert (top.name, top.parent, top.max_applications, top.children) == ("root", True, 3, ())
    assert top.max is None


def test_queue_names_are_unique_on_their_level() -> None:
    names = ["a", "x" * 64, "Team-A_1:#/@"]
    top = root("queues: [" + ", ".join(f"{{name: '{name}'}}" for name in names) + "]")
    assert [child.name for child in top.children] == [name.lower() for name in names]
    top = root("queues: [{name: a, queues: [{name: a}]}, {name: b, queues: [{name: a}]}]")
    assert [child.children[0].path for child in top.children] == ["root.a.a", "root.b.a"]


def test_a_queue_is_a_parent_by_its_flag_or_its_children() -> None:
    top = root("queues: [{name: a, parent: true}, {name: b, queues: [{name: c}]}, {name: d}]")
    assert [child.parent for child in top.children] == [True, True, False]


def test_access_lists() -> None:
    child = queue("submitacl: 'ann staff', adminacl: ' ops'")
    assert child.submit_acl == ACL(frozenset({"ann"}), frozenset({"staff"}))
    assert child.admin_acl == ACL(groups=frozenset({"ops"}))


# -- quotas ------------------------------------------------------------------


def test_amounts_are_in_base_units() -> None:
    child = quota("{vcore: 500m}", "{vcore: 2, memory: 2Gi, gpu: 1}")
    assert child.guaranteed == {"vcore": 500}
    assert child.max == {"vcore": 2000, "memory": 2**31, "gpu": 1}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("", None),
        ("{}", None),
        ("{vcore: 0}", None),
        ("{vcore: 0, memory: 10}", {"vcore": 0, "memory": 10}),
    ],
)
def test_5_1_zero_max_is_not_set(written: str, meant: dict[str, int] | None) -> None:
    assert quota("", written).max == meant
    assert quota(written).guaranteed == meant


def test_quotas_that_fit() -> None:
    assert quota("{vcore: 2, gpu: 9}", "{vcore: 2}")
    assert quota("", "{memory: 5}", DEEP % 5)
    assert quota("{memory: 5}", "{memory: 5}", BELOW)
    assert quota("{vcore: 5}", "{vcore: 5}", BELOW)
    assert root(APPS.format(5, 5)).children[0].max_applications == 5
    assert root(APPS.format(0, 7)).children[0].max_applications == 7


def test_child_templates_are_inherited_by_parents() -> None:
    top = root(
        """
        childtemplate:
          maxapplications: 10
          properties: {application.sort.policy: fair}
          resources: {guaranteed: {memory: 4k}, max: {memory: 0}}
        queues:
        - {name: a, queues: [{name: leaf}]}
        - {name: b, parent: true, childtemplate: {maxapplications: 1}}
        - {name: c, parent: true, childtemplate: {resources: {max: {vcore: 0}}}}
        """
    )
    template = ChildTemplate(10, {"application.sort.policy": "fair"}, {"memory": 4000}, None)
    a, b, c = top.children
    assert top.child_template == a.child_template == c.child_template == template
    assert b.child_template == ChildTemplate(1, {}, None, None)
    assert a.children[0].child_template is None


def test_a_template_on_a_leaf_is_a_warning() -> None:
    configuration = load("partitions: [{queues: [{name: a, childtemplate: {maxapplications: 1}}]}]")
    assert configuration.partitions[0].root.children[0].child_template is None
    assert [warning.path for warning in configuration.warnings] == [f"{R}.childtemplate"]


# -- limits ------------------------------------------------------------------


def test_limits_as_data() -> None:
    child = limited(
        "[{limit: some, users: [ann, '*'], maxresources: {memory: 50, vcore: 9}}, "
        "{groups: [g, '*'], maxapplications: 9}]"
    )
    assert child.limits == (
        LimitConfig("some", ("ann", "*"), (), {"memory": 50, "vcore": 9000}, 0),
        LimitConfig("", (), ("g", "*"), None, 9),
    )


@pytest.mark.parametrize("named", ["ann", "'*'"])
def test_limits_stay_within_those_of_the_queues_above(named: str) -> None:
    def tree(memory: int, apps: int) -> QueueConfig:
        return root(
            f"""
            limits:
            - {{users: [{named}], maxresources: {{memory: 10}}, maxapplications: 5}}
            queues:
            - name: a
              limits: [{{users: [bob], maxapplications: 1}}]
              queues:
              - name: b
                limits:
                - users: [ann]
                  maxresources: {{memory: {memory}, vcore: 9}}
                  maxapplications: {apps}
            """
        )

    assert tree(10, 5) and tree(10, 0)
    deep = f"{Q}.queues[0].limits[0]"
    for amounts, key, reason in (((11, 5), "resources", "10"), ((1, 6), "applications", "6 > 5")):
        ((path, found),) = refused(tree, *amounts)  # type: ignore[arg-type]
        assert path == f"{deep}.max{key}"
        assert reason in found


def test_limits_of_groups_and_users_are_not_compared() -> None:
    assert root(
        "limits: [{groups: [g], maxapplications: 1}]\n"
        "queues: [{name: a, limits: [{users: [g], maxapplications: 9}]}]"
    )


def test_partition_limits_are_the_roots() -> None:
    expected = (LimitConfig("", ("ann",), (), None, 5),)
    for queues in ("[]", "[{name: a}]", "[{name: root}]", f"[{{name: root, {ANN.strip()}}}]"):
        part = partition(f"{ANN}queues: {queues}")
        assert part.limits == part.root.limits == expected


# -- placement rules ---------------------------------------------------------


def test_placement_rules_as_data() -> None:
    (rule,) = rules(
        "[{name: Tag, value: namespace, create: true, "
        "filter: {type: DENY, users: [ann, b!], groups: ['dev.*']}, "
        "parent: {name: fixed, value: root.parent}}]"
    )
    assert rule == PlacementRule(
        "tag",
        "namespace",
        create=True,
        filter=PlacementFilter(False, ("ann", "b!"), ("dev.*",)),
        parent=PlacementRule("fixed", "root.parent"),
    )


@pytest.mark.parametrize(
    "rule",
    [
        "{name: fixed, value: root.leaf}",
        "{name: fixed, value: leaf}",
        "{name: fixed, value: ROOT.PARENT.X}",
        "{name: fixed, value: root.none.at.all, create: true}",
        "{name: fixed, value: root.parent.none, create: true}",
        "{name: fixed, value: x, parent: {name: fixed, value: root.parent}}",
        "{name: user, parent: {name: fixed, value: root.parent}}",
        "{name: user, create: true, parent: {name: fixed, value: root.none}}",
        "{name: fixed, value: none, parent: {name: user}}",
        "{name: rooted}",
        "{name: user, filter: {users: ['[[a]']}}",
    ],
)
def test_placement_rules_that_are_accepted(rule: str) -> None:
    assert len(rules(f"[{rule}]")) == 1
