"""Texts and selectors of the tests of the shim: queue configurations, styles of a gang, the node of a daemon."""

from quadriga.k8s.objects import NodeSelector, NodeSelectorTerm, Requirement
from quadriga.k8s.shim import actions
from quadriga.k8s.shim.actions import Action, PodRef


def queues(*children: str, rules: str = "", **root: str) -> str:
    """A configuration: the children of the root queue, the placement rules, and more of the root, in YAML."""
    more = "".join(f", {key}: {value}" for key, value in root.items())
    text = f'queues: [{{name: root, submitacl: "*"{more}, queues: [{", ".join(children)}]}}]'
    placed = f"placementrules: {rules}, " if rules else ""
    return f"partitions: [{{name: default, {placed}{text}}}]"


DEFAULT = "{name: default}"
SMALL = "{name: small, resources: {max: {vcore: 1000m, memory: 64Gi}}}"
QUEUES = queues(DEFAULT, SMALL)
#: placeholders are placed one by one, and the first one starts the clock
WHOLE = queues(DEFAULT, properties="{gang.admission: whole}")
#: an application names a queue that there is
STRICT = queues("{name: open}", rules="[{name: provided, create: false}]")

SOFT = "placeholderTimeoutInSeconds=5 gangSchedulingStyle=Soft"
HARD = "placeholderTimeoutInSeconds=5 gangSchedulingStyle=Hard"


def only(node: str) -> NodeSelector:
    """What the controller of DaemonSets writes into a pod for one node."""
    name = Requirement("metadata.name", "In", (node,))
    return NodeSelector((NodeSelectorTerm(match_fields=(name,)),))


def line_of(action: Action) -> str:
    """An action in a word, and its pod."""
    if isinstance(action, actions.Send):
        return type(action.request).__name__
    ref = getattr(action, "pod", None)
    name = ref.name if isinstance(ref, PodRef) else ""
    return f"{type(action).__name__} {name}".strip()
