"""Which queue an application goes to, or why none (2.3); users and their groups (I24, 2.4, 2.10)."""

import getpass
import os
from typing import Any

import pytest
from tree_side import paths

from quadriga import si
from quadriga.core import Scheduler
from quadriga.core.driver.os_groups import OsGroups, groups_of_system
from quadriga.core.driver.service import SchedulerService
from quadriga.si import AddApplicationRequest, ApplicationRequest, UserGroupInformation
from quadriga.sim.scripted.script import Script


def tree(*more: str, root: str = "submitacl: '*'") -> str:
    """Root with the queues a and team.x, and more, each a YAML flow mapping."""
    return f"{{name: root, {root}, queues: [{', '.join(['{name: a}', TEAM, *more])}]}}"


TEAM = "{name: team, queues: [{name: x}]}"
QUEUES = tree()


def configuration(rules: str, queues: str = QUEUES) -> str:
    """With these placement rules, each a YAML flow mapping on a line of its own."""
    lines = ", ".join(rules.strip().splitlines())
    placement = f"placementrules: [{lines}], " if lines else ""
    return f"partitions: [{{name: default, {placement}queues: [{queues}]}}]"


def cluster(rules: str, queues: str = QUEUES) -> Script:
    return Script(configuration(rules, queues))


def add(script: Script, queue: str = "", *, groups: tuple[str, ...] = (), **given: Any) -> str:
    """Submit one application. Its queue, or why it was rejected."""
    app_id = f"app-{script.scheduler.partition(rm_id=script.rm_id).submissions + 1}"
    request = AddApplicationRequest(
        applicationID=app_id,
        queueName=queue,
        ugi=UserGroupInformation(user=given.get("user", "joe"), groups=groups),
        tags=given.get("tags", {}),
    )
    (line,) = script.send(ApplicationRequest(rmID=script.rm_id, new=[request]))
    if line != f"accepted {app_id}":
        return line.removeprefix(f"rejected {app_id}: ")
    return script.scheduler.application(app_id, rm_id=script.rm_id).queue.path


NO_MATCH = "application rejected: no placement rule matched"


def test_without_rules_the_queue_must_be_named_and_exist() -> None:
    script = cluster("")
    assert add(script, "root.a") == "root.a"
    assert add(script, "a") == "root.a"
    assert add(script, "ROOT.Team.X") == "root.team.x"
    for queue in ("", "root", "root.nope", "nope", "root.team", "team.x"):
        assert NO_MATCH in add(script, queue)


# -- fixed, user, tag ------------------------------------------------------------------------------


BY_TAG = "{name: user, create: true, parent: {name: tag, value: namespace, create: true}}"
NESTED = (
    "{name: provided, create: true, parent: {name: user, create: true, "
    "filter: {users: [joe]}, parent: {name: fixed, value: root.team}}}"
)


# fmt: off
PLACED: list[tuple[str, dict[str, Any], str]] = [
    # rules, what is given, the queue or why there is none
    # provided: it makes the queue where it may, and a name that is no path is one level
    ("{name: provided, create: true}", {"queue": "root.team.new.deep"}, "root.team.new.deep"),
    ("{name: provided, create: true}", {"queue": "Plain"}, "root.plain"),
    ("{name: provided, create: true}", {"queue": "b.c.d"}, "root.b_dot_c_dot_d"),
    ("{name: provided, create: true}", {"queue": "root.a.b"}, "root.a.b cannot be created: root.a is a leaf"),
    # the parent rule says where an unqualified queue is
    ("{name: provided, create: true, parent: {name: user, create: true}}", {"queue": "b"}, "root.joe.b"),
    ("{name: provided, create: true, parent: {name: user, create: true}}", {"queue": "root.a"}, "root.a"),
    # fixed is for everybody, and keeps the levels of its value below the parent rule
    ("{name: fixed, value: root.team.x}", {"queue": "root.a"}, "root.team.x"),
    ("{name: fixed, value: in.out, create: true, parent: {name: fixed, value: team}}", {}, "root.team.in.out"),
    # user makes a queue for each user
    ("{name: user, create: true, parent: {name: fixed, value: root.team}}", {"user": "joe"}, "root.team.joe"),
    ("{name: user, create: true, parent: {name: fixed, value: root.team}}",
     {"user": "j.doe@example.org"}, "root.team.j_dot_doe@example_dot_org"),
    ("{name: user, create: true, parent: {name: fixed, value: root.team}}", {"user": "root"}, "root.team.root"),
    # tag takes the value of an application's tag, whatever its case; a qualified one skips the parent rule
    ("{name: tag, value: NameSpace, create: true}", {"tags": {"Namespace": "dev"}}, "root.dev"),
    ("{name: tag, value: NameSpace, create: true}", {"tags": {"namespace": "v1.2"}}, "root.v1_dot_2"),
    ("{name: tag, value: NameSpace, create: true}", {"tags": {"name": "dev"}},
     "tag NameSpace): the application has no such tag"),
    ("{name: tag, value: namespace, create: true, parent: {name: fixed, value: root.team}}",
     {"tags": {"namespace": "root.a"}}, "root.a"),
    ("{name: tag, value: namespace, create: true, parent: {name: fixed, value: root.team}}",
     {"tags": {"namespace": "n"}}, "root.team.n"),
    # a parent rule without an answer is no match; one that answers a leaf is the end
    (BY_TAG + "\n{name: provided}", {"queue": "root.a"}, "root.a"),
    (BY_TAG + "\n{name: provided}", {"queue": "root.a", "tags": {"namespace": "n"}}, "root.n.joe"),
    (BY_TAG + "\n{name: provided}", {"queue": "root.a", "tags": {"namespace": "a"}},
     "parent rule tag namespace returned a leaf queue: root.a"),
    # parent rules nest and have filters of their own
    (NESTED, {"queue": "b"}, "root.team.joe.b"),
    (NESTED, {"queue": "b", "user": "ann"}, "parent rule user: its filter keeps user ann out"),
    # no user may submit to the recovery queue
    ("{name: provided, create: true}", {"queue": "root.@recovery@"}, "no user may submit to root.@recovery@"),
    ("{name: provided, create: true}", {"queue": "root.@recovery@.x"}, "no user may submit"),
]
# fmt: on


@pytest.mark.parametrize(("rules", "given", "said"), PLACED)
def test_where_a_rule_places(rules: str, given: dict[str, Any], said: str) -> None:
    found = add(cluster(rules), **given)
    assert found == said if said.startswith("root.") and " " not in said else said in found


def test_a_rejection_says_what_every_rule_answered() -> None:
    script = cluster(
        """
        {name: tag, value: namespace, filter: {users: [admin]}}
        {name: user, create: true, parent: {name: fixed, value: nope}}
        {name: provided}
        """
    )
    said = add(script, "root.team", tags={"namespace": "a"})
    assert said == (
        "failed to place application app-1: application rejected: no placement rule matched: "
        "rule 1 (tag namespace): its filter keeps user joe out; "
        "rule 2 (user): parent rule fixed nope: queue root.nope does not exist, "
        "and create is false; "
        "rule 3 (provided): queue root.team is a parent; "
        "root.default: does not exist"
    )


@pytest.mark.parametrize(
    ("rule", "user", "groups", "passes"),
    [
        ("{}", "joe", (), True),
        ("{type: deny}", "joe", (), False),
        ("{type: allow, users: [joe, ann]}", "joe", (), True),
        ("{users: [joe, ann]}", "Joe", (), False),
        ("{type: deny, users: [joe]}", "joe", (), False),
        ("{type: deny, users: [joe]}", "ann", (), True),
        ("{users: ['^j.*']}", "joe", (), True),
        ("{users: ['^j.*']}", "xjoe", (), False),
        ("{users: ['o+']}", "joe", (), True),
        ("{users: [joe, '^a']}", "ann", (), False),  # only a single entry is an expression
        ("{groups: [dev, ops]}", "joe", ("web", "ops"), True),
        ("{groups: [dev, ops]}", "joe", ("web",), False),
        ("{groups: ['^dev-[0-9]+$']}", "joe", ("dev-12",), True),
        ("{type: deny, groups: [dev]}", "joe", ("dev",), False),
        ("{type: deny, users: [ann], groups: [dev]}", "joe", ("web",), True),
        ("{users: [ann], groups: [dev]}", "joe", ("dev",), True),
    ],
)
def test_whom_a_rule_is_for(rule: str, user: str, groups: tuple[str, ...], passes: bool) -> None:
    said = add(cluster(f"{{name: fixed, value: root.a, filter: {rule}}}"), user=user, groups=groups)
    assert (said == "root.a") is passes, said


# -- what can be used ------------------------------------------------------------------------------


def guarded(*more: str) -> str:
    team = "{name: team, parent: true, submitacl: joe dev, adminacl: boss, queues: [{name: x}]}"
    anyone = "{name: open, submitacl: '*'}"
    return f"{{name: root, queues: [{', '.join([anyone, team, *more])}]}}"


GUARDED = guarded()


def test_for_a_new_queue_the_nearest_that_exists_says_who_may() -> None:
    script = cluster("{name: provided, create: true}", GUARDED)
    assert add(script, "root.team.new.deep") == "root.team.new.deep"
    assert "user ann may not submit to root.team" in add(script, "root.team.more", user="ann")
    assert "may not submit to root" in add(script, "root.new")
    assert paths(script)[-2:] == ["root.team.new.deep", "root.team.x"]


@pytest.mark.parametrize("queue", ["root.b!", "root..b", "root.b.", "b c", "root." + "b" * 65])
def test_what_is_no_queue_name_is_refused(queue: str) -> None:
    script = cluster("{name: provided, create: true}\n{name: fixed, value: root.a}")
    assert "is not a queue name" in add(script, queue)
    # where it would not be made, it is one that does not exist
    script = cluster("{name: provided}\n{name: fixed, value: root.a}")
    assert add(script, queue) == "root.a"


# -- the recovery queue, the default queue ---------------------------------------------------------

FORCE = {"application.create.force": "true"}


def test_what_runs_already_is_taken_in_whatever_the_rules_say() -> None:
    script = cluster("{name: provided}\n{name: user, filter: {users: [ann]}}")
    assert add(script, "root.nope", tags=FORCE) == "root.@recovery@"
    assert add(script, "root.a", tags=FORCE) == "root.a"
    assert add(script, "root.a!", tags={"Application.Create.Force": "TRUE"}) == "root.@recovery@"
    assert NO_MATCH in add(script, "root.nope", tags={"application.create.force": "no"})
    assert "no user may submit to root.@recovery@" in add(script, "root.@recovery@")
    recovery = script.scheduler.partition().queue("root.@recovery@")
    assert recovery is not None
    assert not recovery.managed


def test_the_recovery_queue_has_no_template_and_takes_no_quota() -> None:
    template = "{maxapplications: 2, resources: {max: {memory: 10}}}"
    fair = "{application.sort.policy: fair}"
    queues = tree(root=f"submitacl: '*', properties: {fair}, childtemplate: {template}")
    script = cluster("", queues)
    quota = '{"resources": {"memory": {"value": 5}}}'
    assert add(script, "nope", tags={**FORCE, "namespace.resourcequota": quota})
    recovery = script.scheduler.partition().queue("root.@recovery@")
    assert recovery is not None
    assert recovery.max is None
    assert recovery.max_applications == 0
    assert not recovery.fair


def test_root_default_too_has_to_be_a_leaf_and_open_to_the_user() -> None:
    script = cluster("", guarded("{name: default, submitacl: ann}"))
    assert add(script, "root.nope", user="ann") == "root.default"
    assert "root.default: user joe may not submit to root.default" in add(script, "root.nope")
    parent = tree("{name: default, parent: true}")
    assert "root.default: queue root.default is a parent" in add(cluster("", parent))


# -- configurations --------------------------------------------------------------------------------


def test_rules_that_cannot_match_are_accepted_as_by_yunikorn_and_said() -> None:
    script = cluster(
        "{name: primarygroup}\n{name: tag}\n{name: user, create: true, parent: {name: fixed}}"
    )
    notes = [text for _, text in script.scheduler.notes]
    assert notes == [
        "partition default: placement rule 1 (primarygroup) never matches: there is no such rule",
        "partition default: placement rule 2 (tag) never matches: it has no value",
        "partition default: placement rule 3 (user) never matches: parent rule fixed: it has no value",
    ]
    assert "rule 1 (primarygroup): there is no such rule" in add(script, "root.a")


def test_placement_is_part_of_the_explanation() -> None:
    script = cluster("{name: user, create: true}")
    add(script, "root.a")
    script.ask("app-1", "k", vcore=1)
    checks = script.scheduler.explain("app-1", "k").checks
    texts = [check.text for check in checks if check.about == "placement"]
    assert texts == ["queue root.joe by rule 1 (user) ('root.a' was asked for)"]


DEV_ONLY = (
    "partitions: [{name: default, queues: [{name: root, queues: [{name: a, submitacl: ' dev'}]}]}]"
)

SECOND = 10**9


def submit(script: Script, app_id: str, user: str, *groups: str) -> list[str]:
    return script.app(app_id, "root.a", user=user, groups=groups)


def test_i24_without_a_resolver_there_are_no_groups() -> None:
    script = Script(DEV_ONLY)
    assert submit(script, "one", "joe")[0].startswith("rejected one")
    script.scheduler.set_group_resolver(lambda user: ("dev",))
    assert submit(script, "two", "joe") == ["accepted two"]
    assert submit(script, "named", "joe", "web")[0].startswith("rejected named")  # is believed
    script.scheduler.set_group_resolver(None)
    assert submit(script, "three", "joe")[0].startswith("rejected three")


# -- the resolver of the service -------------------------------------------------------------------


class System:
    """A user database that counts the questions, and a clock."""

    def __init__(self) -> None:
        self.now = 0
        self.asked: list[str] = []
        self.groups = {"joe": ("dev",)}

    def look_up(self, user: str) -> tuple[str, ...]:
        self.asked.append(user)
        return self.groups[user]

    def resolver(self) -> OsGroups:
        return OsGroups(lambda: self.now, self.look_up)


@pytest.mark.parametrize(("user", "groups", "kept"), [("joe", ("dev",), 300), ("ann", (), 30)])
def test_2_10_an_answer_is_kept_for_a_while(user: str, groups: Any, kept: int) -> None:
    """Five minutes; that there is none for half a minute."""
    system = System()
    resolver = system.resolver()
    assert resolver(user) == groups
    system.groups[user] = ("ops",)
    system.now = kept * SECOND - 1
    assert resolver(user) == groups
    system.now += 1
    assert resolver(user) == ("ops",)
    assert system.asked == [user, user]


def test_answers_that_are_over_are_forgotten() -> None:
    system = System()
    resolver = system.resolver()
    for number in range(3000):
        system.now += SECOND
        resolver(f"user-{number}")
    assert len(resolver.answers.known) <= 301


@pytest.mark.parametrize("failure", [KeyError("joe"), OSError("database is away"), ValueError()])
def test_a_failure_to_look_up_is_no_groups(failure: Exception) -> None:
    def look_up(user: str) -> tuple[str, ...]:
        raise failure

    assert OsGroups(lambda: 0, look_up)("joe") == ()


@pytest.mark.skipif(os.name != "posix", reason="the user database of POSIX")
def test_the_system_knows_the_groups_of_its_users() -> None:
    import grp
    import pwd

    me = pwd.getpwuid(os.getuid())
    groups = groups_of_system(me.pw_name)
    assert groups[0] == grp.getgrgid(me.pw_gid).gr_name
    assert list(groups[1:]) == sorted(set(groups[1:]) - {groups[0]})
    with pytest.raises(LookupError):
        groups_of_system("no such user: 7")
    assert OsGroups(lambda: 0)("no such user: 7") == ()


def service_says(service: SchedulerService, user: str) -> str:
    """The queue of an application that a user submits in-process."""
    service.register_resource_manager(
        si.RegisterResourceManagerRequest(rmID="rm", config=DEV_ONLY), si.NullCallback()
    )
    request = si.AddApplicationRequest(
        applicationID="app", queueName="root.a", ugi=si.UserGroupInformation(user=user)
    )
    service.update_application(si.ApplicationRequest(rmID="rm", new=[request]))

    def groups(core: Scheduler) -> tuple[str, ...]:
        return core.application("app").groups_of_user

    found: tuple[str, ...] = service.read(groups)
    return " ".join(found)


def test_the_service_asks_whom_it_is_told_to_ask() -> None:
    with SchedulerService(manual=True, groups_of=lambda user: ("dev",)) as service:
        assert service_says(service, "joe") == "dev"


@pytest.mark.skipif(os.name != "posix", reason="the user database of POSIX")
def test_the_service_asks_the_operating_system_otherwise() -> None:
    user = getpass.getuser()
    with SchedulerService(manual=True, clock=lambda: SECOND) as service:
        assert service_says(service, user) == " ".join(OsGroups(lambda: 0)(user))
