"""What a configuration may say: one test for each rule of sections 2.2 and 5.1."""

from __future__ import annotations

import hashlib
import textwrap

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
)

P = "partitions[0]"
R = "partitions[0].queues[0]"
Q = "partitions[0].queues[0].queues[0]"


def partition(text: str) -> PartitionConfig:
    (only,) = load("partitions:\n-\n" + textwrap.indent(textwrap.dedent(text), "  ")).partitions
    return only


def root(text: str) -> QueueConfig:
    """The root queue with the keys in `text`."""
    body = textwrap.indent(textwrap.dedent(text), "  ")
    return partition("queues:\n- name: root\n" + body).root


def refused(build: object, text: str) -> list[tuple[str, str]]:
    assert callable(build)
    with pytest.raises(ConfigError) as caught:
        build(text)
    return [(problem.path, problem.reason) for problem in caught.value.problems]


def only_problem(build: object, text: str, path: str, reason: str) -> None:
    ((found_path, found_reason),) = refused(build, text)
    assert found_path == path
    assert reason in found_reason


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
            node_sort_policy="fair",
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


# -- partitions --------------------------------------------------------------


def test_partition_names_differ_by_more_than_case() -> None:
    names = [
        part.name for part in load("partitions: [{queues: []}, {name: GPU, queues: []}]").partitions
    ]
    assert names == ["default", "GPU"]
    only_problem(
        load, "partitions: [{queues: []}, {name: Default, queues: []}]", "partitions[1]", "already"
    )


def test_queues_are_required() -> None:
    only_problem(load, "partitions: [{name: default}]", P, "queue config is not set")
    assert load("partitions: [{queues: []}]").partitions[0].root.children == ()


def test_preemption_switches() -> None:
    part = partition("queues: []\npreemption: {enabled: false, quotapreemptionenabled: true}")
    assert not part.preemption_enabled
    assert part.quota_preemption_enabled
    only_problem(
        partition,
        "queues: []\npreemption: {enabled: off}",
        f"{P}.preemption.enabled",
        "true or false",
    )


def test_node_sort_policy() -> None:
    part = partition(
        "queues: []\n"
        "nodesortpolicy: {type: binpacking, resourceweights: {vcore: 2, gpu: 0.5, x: 0}}"
    )
    assert part.node_sort_policy == "binpacking"
    assert part.resource_weights == {"vcore": 2.0, "gpu": 0.5, "x": 0.0}
    where = f"{P}.nodesortpolicy"
    only_problem(
        partition,
        "queues: []\nnodesortpolicy: {type: best}",
        f"{where}.type",
        "'best' is neither fair nor binpacking nor bestfit",
    )
    assert partition("queues: []\nnodesortpolicy: {type: bestfit}").node_sort_policy == "bestfit"
    for weight in ("-1.0", ".inf", ".nan", "1e999", "'1'", "heavy", ""):
        only_problem(
            partition,
            f"queues: []\nnodesortpolicy: {{resourceweights: {{gpu: {weight}}}}}",
            f"{where}.resourceweights.gpu",
            "negative" if weight == "-1.0" else "a finite number",
        )


def test_each_negative_weight_is_a_problem_whatever_the_others_are() -> None:
    text = "partitions: [{{queues: [], nodesortpolicy: {{resourceweights: {{{}}}}}}}]"
    for weights, negative in (
        ("vcore: -1, memory: 0.5, gpu: 5", ["vcore"]),
        ("vcore: -1, memory: 1", ["vcore"]),
        ("vcore: -1, memory: -2, gpu: 2", ["vcore", "memory"]),
    ):
        with pytest.raises(ConfigError) as caught:
            load(text.format(weights))
        assert [(problem.path, problem.reason) for problem in caught.value.problems] == [
            (f"{P}.nodesortpolicy.resourceweights.{name}", "a weight must not be negative")
            for name in negative
        ]


def test_user_group_resolver() -> None:
    assert partition("queues: []\nusergroupresolver: {type: ldap}").user_group_resolver == "ldap"
    only_problem(
        partition,
        "queues: []\nusergroupresolver: {type: nis}",
        f"{P}.usergroupresolver.type",
        "nis",
    )


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
    top = partition("queues: [{name: ROOT, maxapplications: 3}]").root
    assert (top.name, top.parent, top.max_applications, top.children) == ("root", True, 3, ())


def test_paths_of_problems_below_an_inserted_root() -> None:
    only_problem(partition, "queues: [{name: a}, {name: 'b!'}]", f"{P}.queues[1].name", "'b!'")


@pytest.mark.parametrize("kind", ["max", "guaranteed"])
@pytest.mark.parametrize("amounts", ["{memory: 1}", "{memory: 0}", "{}"])
def test_the_root_has_no_resource_limits(kind: str, amounts: str) -> None:
    only_problem(
        root,
        f"resources: {{{kind}: {amounts}}}",
        f"{R}.resources",
        "root queue must not have resource limits set",
    )
    assert root(f"resources: {{{kind}: }}").max is None


def test_queue_names() -> None:
    names = ["a", "x" * 64, "Team-A_1:#/@"]
    top = root("queues: [" + ", ".join(f"{{name: '{name}'}}" for name in names) + "]")
    assert [child.name for child in top.children] == [name.lower() for name in names]
    for bad in ("", "x" * 65, "a.b", "a b", "\u00e9", "$", "a\\n"):
        only_problem(root, f'queues: [{{name: "{bad}"}}]', f"{Q}.name", "is not a queue name")
    only_problem(root, "queues: [{parent: true}]", f"{Q}.name", "is not a queue name")


def test_queue_names_are_unique_on_their_level() -> None:
    top = root("queues: [{name: a, queues: [{name: a}]}, {name: b, queues: [{name: a}]}]")
    assert [child.children[0].path for child in top.children] == ["root.a.a", "root.b.a"]
    only_problem(root, "queues: [{name: a}, {name: A}]", f"{R}.queues[1].name", "already")


def test_a_queue_is_a_parent_by_its_flag_or_its_children() -> None:
    top = root("queues: [{name: a, parent: true}, {name: b, queues: [{name: c}]}, {name: d}]")
    assert [child.parent for child in top.children] == [True, True, False]


def test_access_lists() -> None:
    (child,) = root("queues: [{name: a, submitacl: 'ann staff', adminacl: ' ops'}]").children
    assert child.submit_acl == ACL(frozenset({"ann"}), frozenset({"staff"}))
    assert child.admin_acl == ACL(groups=frozenset({"ops"}))
    only_problem(root, "adminacl: a b c", f"{R}.adminacl", "multiple spaces found in ACL")


# -- quotas ------------------------------------------------------------------


def quota(guaranteed: str = "", maximum: str = "", below: str = "") -> str:
    return (
        f"queues: [{{name: a, resources: {{guaranteed: {guaranteed}, max: {maximum}}}, "
        f"queues: [{below}]}}]"
    )


def test_amounts_are_in_base_units() -> None:
    (child,) = root(quota("{vcore: 500m}", "{vcore: 2, memory: 2Gi, gpu: 1}")).children
    assert child.guaranteed == {"vcore": 500}
    assert child.max == {"vcore": 2000, "memory": 2**31, "gpu": 1}


@pytest.mark.parametrize(
    "text", ["1K", "1.5", "-1", "10m", "''", "{}", "[1]", "9223372036854775808"]
)
def test_bad_amounts(text: str) -> None:
    ((path, _),) = refused(root, quota("", f"{{memory: {text}}}"))
    assert path == f"{Q}.resources.max.memory"


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
    assert root(quota("", written)).children[0].max == meant
    assert root(quota(written)).children[0].guaranteed == meant


def test_guaranteed_fits_max() -> None:
    assert root(quota("{vcore: 2, gpu: 9}", "{vcore: 2}"))
    only_problem(
        root, quota("{vcore: 3}", "{vcore: 2}"), f"{Q}.resources.guaranteed", "3000 > 2000"
    )
    only_problem(root, quota("{vcore: 3}", "{vcore: 0}"), f"{Q}.resources.guaranteed", "3000 > 0")


def test_max_fits_the_max_of_every_queue_above() -> None:
    deep = "{name: b, queues: [{name: c, resources: {max: {memory: %s, gpu: 4}}}]}"
    assert root(quota("", "{memory: 5}", deep % 5))
    only_problem(
        root,
        quota("", "{memory: 5}", deep % 6),
        f"{Q}.queues[0].queues[0].resources.max",
        "memory 6 > 5",
    )


def test_the_guaranteed_of_the_children_fits_guaranteed_and_max() -> None:
    # b has none of its own and passes up what its children have.
    below = (
        "{name: b, queues: [{name: c, resources: {guaranteed: {memory: 3}}}]}, "
        "{name: d, resources: {guaranteed: {memory: 2}}}"
    )
    assert root(quota("{memory: 5}", "{memory: 5}", below))
    assert root(quota("{vcore: 5}", "{vcore: 5}", below))
    only_problem(
        root,
        quota("{memory: 4}", "{memory: 9}", below),
        f"{Q}.resources.guaranteed",
        "memory 5 > 4",
    )
    only_problem(root, quota("", "{memory: 4}", below), f"{Q}.resources.max", "memory 5 > 4")
    inherited = quota("", "{memory: 4}", f"{{name: x, queues: [{below}]}}")
    assert {path for path, _ in refused(root, inherited)} == {
        f"{Q}.resources.max",
        f"{Q}.queues[0]",
    }


def test_max_applications_shrink_downwards() -> None:
    tree = "maxapplications: {}\nqueues: [{{name: a, maxapplications: {}}}]"
    assert root(tree.format(5, 5)).children[0].max_applications == 5
    assert root(tree.format(0, 7)).children[0].max_applications == 7
    for child in (6, 0):
        only_problem(
            root,
            tree.format(5, child),
            f"{Q}.maxapplications",
            "parent maxApplications must be larger than child maxApplications",
        )


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
    only_problem(
        root,
        "childtemplate: {resources: {max: {memory: lots}}}",
        f"{R}.childtemplate.resources.max.memory",
        "'lots'",
    )


def test_a_template_on_a_leaf_is_a_warning() -> None:
    text = "partitions: [{queues: [{name: a, childtemplate: {maxapplications: 1}}]}]"
    configuration = load(text)
    assert configuration.partitions[0].root.children[0].child_template is None
    assert [warning.path for warning in configuration.warnings] == [f"{R}.childtemplate"]


@pytest.mark.parametrize(
    ("template", "path", "reason"),
    [
        ("some text", "", "a mapping is expected"),
        ("[1]", "", "a mapping is expected"),
        ("{max: {}}", ".max", "unknown key"),
        ("{resources: {max: {memory: lots}}}", ".resources.max.memory", "'lots'"),
    ],
)
def test_a_template_on_a_leaf_that_cannot_be_read_is_a_problem(
    template: str, path: str, reason: str
) -> None:
    only_problem(
        root,
        f"queues: [{{name: a, childtemplate: {template}}}]",
        f"{Q}.childtemplate{path}",
        reason,
    )


# -- limits ------------------------------------------------------------------


def limit(text: str) -> str:
    return (
        "queues: [{name: a, maxapplications: 9, resources: {max: {memory: 50}}, "
        f"limits: {text}}}]"
    )


def test_limits_as_data() -> None:
    (child,) = root(
        limit(
            "[{limit: some, users: [ann, '*'], maxresources: {memory: 50, vcore: 9}}, "
            "{groups: [g, '*'], maxapplications: 9}]"
        )
    ).children
    assert child.limits == (
        LimitConfig("some", ("ann", "*"), (), {"memory": 50, "vcore": 9000}, 0),
        LimitConfig("", (), ("g", "*"), None, 9),
    )


L = f"{Q}.limits"


@pytest.mark.parametrize(
    ("limits", "path", "reason"),
    [
        ("[{maxapplications: 1}]", f"{L}[0]", "empty user and group lists"),
        ("[{users: [a b], maxapplications: 1}]", f"{L}[0].users[0]", "not a valid user name"),
        ("[{groups: [a, g$], maxapplications: 1}]", f"{L}[0].groups[1]", "not a valid group name"),
        ("[{users: ann, maxapplications: 1}]", f"{L}[0].users", "a list is expected"),
        ("[{users: [a, a], maxapplications: 1}]", f"{L}[0].users[1]", "already"),
        (
            "[{groups: [a], maxapplications: 1}, {groups: [a], maxapplications: 1}]",
            f"{L}[1].groups[0]",
            "already",
        ),
        (
            "[{users: ['*'], maxapplications: 1}, {users: [a], maxapplications: 1}]",
            f"{L}[1].users[0]",
            "after the wildcard",
        ),
        ("[{groups: ['*', a], maxapplications: 1}]", f"{L}[0].groups[1]", "after the wildcard"),
        ("[{groups: ['*'], maxapplications: 1}]", f"{L}[0].groups", "the only group"),
        ("[{users: [a]}]", f"{L}[0]", "neither maxresources nor maxapplications"),
        ("[{users: [a], maxresources: 5}]", f"{L}[0].maxresources", "a mapping is expected"),
        ("[{users: [a], maxapplications: 0}]", f"{L}[0]", "neither maxresources nor"),
        ("[{users: [a], maxresources: {}}]", f"{L}[0]", "neither maxresources nor"),
        (
            "[{users: [a], maxapplications: 1, maxresources: {memory: 0}}]",
            f"{L}[0].maxresources",
            "all amounts are zero",
        ),
        ("[{users: [a], maxresources: {memory: 51}}]", f"{L}[0].maxresources", "memory 51 > 50"),
        ("[{users: [a], maxapplications: 10}]", f"{L}[0].maxapplications", "10 > 9"),
        ("[7]", f"{L}[0]", "a mapping is expected"),
    ],
)
def test_limits_that_are_refused(limits: str, path: str, reason: str) -> None:
    if "users: ann" in limits or limits == "[7]":
        assert refused(root, limit(limits))[0][0] == path
        return
    only_problem(root, limit(limits), path, reason)


@pytest.mark.parametrize("named", ["ann", "'*'"])
def test_limits_stay_within_those_of_the_queues_above(named: str) -> None:
    tree = """
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
    deep = f"{Q}.queues[0].limits[0]"
    assert root(tree.format(named=named, memory=10, apps=5))
    assert root(tree.format(named=named, memory=10, apps=0))
    only_problem(
        root, tree.format(named=named, memory=11, apps=5), f"{deep}.maxresources", "memory 11 > 10"
    )
    only_problem(
        root, tree.format(named=named, memory=1, apps=6), f"{deep}.maxapplications", "6 > 5"
    )


@pytest.mark.parametrize("kind", ["users", "groups"])
@pytest.mark.parametrize("count", [2, 3])
def test_a_name_after_the_wildcard_is_a_problem_whatever_its_quota_is(
    kind: str, count: int
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(
            f"partitions: [{{queues: [{{name: a, limits: ["
            f"{{{kind}: [first], maxapplications: 1}}, {{{kind}: ['*'], maxapplications: 2}},"
            f"{{{kind}: [late], maxapplications: {count}}}]}}]}}]"
        )
    (problem,) = caught.value.problems
    assert problem.path == f"{R}.limits[2].{kind}[0]"
    assert "after the wildcard" in problem.reason


@pytest.mark.parametrize(
    ("above", "own"),
    [
        ("users: [ann]", "users: [ann]"),
        ("users: [ann], maxresources: {memory: 1}", "users: [ann]"),
        ("users: [ann]", "users: [ann], maxresources: {memory: 1}"),
        ("users: ['*']", "users: [ann]"),
        ("groups: [g]", "groups: [g]"),
    ],
)
def test_a_number_of_applications_above_an_ancestors_is_a_problem(above: str, own: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(
            f"partitions: [{{queues: [{{name: a, limits: [{{{above}, maxapplications: 5}}],"
            f" queues: [{{name: b, limits: [{{{own}, maxapplications: 6}}]}}]}}]}}]"
        )
    (problem,) = caught.value.problems
    assert problem.path == f"{Q}.limits[0].maxapplications"
    assert "6 > 5" in problem.reason


def test_limits_of_groups_and_users_are_not_compared() -> None:
    assert root(
        "limits: [{groups: [g], maxapplications: 1}]\n"
        "queues: [{name: a, limits: [{users: [g], maxapplications: 9}]}]"
    )


def test_partition_limits_are_the_roots() -> None:
    written = "limits: [{users: [ann], maxapplications: 5}]\n"
    expected = (LimitConfig("", ("ann",), (), None, 5),)
    for queues in ("[]", "[{name: a}]", "[{name: root}]"):
        part = partition(f"{written}queues: {queues}")
        assert part.limits == part.root.limits == expected
    same = partition(f"{written}queues: [{{name: root, {written.strip()}}}]")
    assert same.limits == same.root.limits == expected
    only_problem(
        partition,
        f"{written}queues: [{{name: root, limits: [{{users: [ann], maxapplications: 6}}]}}]",
        f"{P}.limits",
        "partition limits and root queue limits are not equivalent",
    )
    only_problem(
        partition,
        "limits: [{users: [1], maxapplications: 5}]\nqueues: [{name: root}]",
        f"{P}.limits[0].users[0]",
        "not a valid user name",
    )


# -- placement rules ---------------------------------------------------------


def rules(text: str) -> tuple[PlacementRule, ...]:
    return partition(
        f"""
        queues:
        - name: root
          queues: [{{name: leaf}}, {{name: parent, parent: true, queues: [{{name: x}}]}}]
        placementrules: {text}
        """
    ).placement_rules


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


RULE = f"{P}.placementrules[0]"


@pytest.mark.parametrize(
    ("rule", "path", "reason"),
    [
        ("{}", f"{RULE}.name", "not a rule name"),
        ("{name: 1st}", f"{RULE}.name", "not a rule name"),
        ("{name: user, parent: {name: a-b}}", f"{RULE}.parent.name", "not a rule name"),
        ("{name: user, create: maybe}", f"{RULE}.create", "true or false"),
        ("{name: user, filter: {type: forbid}}", f"{RULE}.filter.type", "neither allow nor deny"),
        ("{name: user, filter: {users: [a!b]}}", f"{RULE}.filter.users", "nor a regular"),
        ("{name: user, filter: {groups: ['a(']}}", f"{RULE}.filter.groups", "nor a regular"),
        ("{name: fixed, value: root.parent}", RULE, "(root.parent) which is not a leaf"),
        ("{name: fixed, value: root}", RULE, "(root) which is not a leaf"),
        ("{name: fixed, value: root.none}", RULE, "non-existing queue (root.none)"),
        ("{name: fixed, value: root.parent.none}", RULE, "non-existing queue (root.parent.none)"),
        ("{name: fixed, value: Root.Leaf.x, create: true}", RULE, "root.leaf above it is a leaf"),
        (
            "{name: user, parent: {name: fixed, value: root.leaf}}",
            RULE,
            "(root.leaf) which is not a parent",
        ),
        (
            "{name: fixed, value: root.x, parent: {name: fixed, value: root.parent}}",
            RULE,
            "only the outermost",
        ),
    ],
)
def test_placement_rules_that_are_refused(rule: str, path: str, reason: str) -> None:
    only_problem(rules, f"[{rule}]", path, reason)


@pytest.mark.parametrize(
    "rule",
    [
        "{name: fixed, value: root.leaf}",
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


def test_an_unqualified_fixed_queue_is_below_the_root_and_must_exist() -> None:
    text = "partitions: [{{queues: [{{name: {}}}], placementrules: [{{name: fixed, value: a}}]}}]"
    assert not load(text.format("a")).warnings
    with pytest.raises(ConfigError) as caught:
        load(text.format("b"))
    (problem,) = caught.value.problems
    assert problem.path == RULE
    assert "non-existing queue (root.a)" in problem.reason
