"""Random nodes and pods, as manifests, for the tests of predicates: few names and values, so that terms
meet pods. With ``old`` only what a server of 1.20 knows, and nothing that its API would refuse."""

from random import Random
from typing import Any

Manifest = dict[str, Any]

ZONES = ("a", "b", "c")
HOST = "kubernetes.io/hostname"
APPS = ("web", "db", "cache")
TIERS = ("1", "2", "10")
FEATURES = (
    "GuaranteedQoSPodCPUResize",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
)
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


class RandomPods:
    def __init__(self, random: Random, *, old: bool = False, namespaces: tuple[str, ...]) -> None:
        self.random = random
        self.old = old
        self.namespaces = namespaces

    def likely(self, chance: float) -> bool:
        return self.random.random() < chance

    def labels(self) -> dict[str, str]:
        """Of a pod."""
        found = {}
        if self.likely(0.9):
            found["app"] = self.random.choice(APPS)
        if self.likely(0.4):
            found["tier"] = self.random.choice(TIERS)
        return found

    def node(self, name: str) -> Manifest:
        labels = {HOST: name}
        if self.likely(0.85):
            labels["zone"] = self.random.choice(ZONES)
        if self.likely(0.4):
            labels["rack"] = self.random.choice(("r1", "r2"))
        if self.likely(0.4):
            labels["size"] = self.random.choice(("1", "2", "10", "large", "010"))
        spec: Manifest = {}
        if self.likely(0.08):
            spec["unschedulable"] = True
        taints = {}
        for _ in range(self.random.choice((0, 0, 0, 1, 2))):
            key, effect = self.random.choice(("gpu", "team")), self.random.choice(EFFECTS)
            taints[key, effect] = {"key": key, "effect": effect}
            if self.likely(0.7):
                taints[key, effect]["value"] = self.random.choice(("x", "y", "5"))
        if taints:
            spec["taints"] = list(taints.values())
        made = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        if not self.old and self.likely(0.4):
            number = self.random.choice((0, 1, 1, 2))
            made["status"] = {"declaredFeatures": self.random.sample(FEATURES, number)}
        return made

    def tolerations(self) -> list[Manifest]:
        found = []
        for _ in range(self.random.choice((0, 0, 1, 2))):
            toleration: Manifest = {}
            operators = ["Exists", "Equal", None] + ([] if self.old else ["Gt", "Lt"])
            operator = self.random.choice(operators)
            if operator:
                toleration["operator"] = operator
            if operator != "Exists" or self.likely(0.8):
                keys = ("gpu", "team", "node.kubernetes.io/unschedulable")
                toleration["key"] = self.random.choice(keys)
            if operator in ("Gt", "Lt"):
                toleration["value"] = self.random.choice(("4", "5", "6"))
            elif operator != "Exists" and self.likely(0.8):
                toleration["value"] = self.random.choice(("x", "y", "5"))
            if self.likely(0.5):
                toleration["effect"] = self.random.choice(EFFECTS)
            found.append(toleration)
        return found

    def node_requirement(self) -> Manifest:
        operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        requirement: Manifest = {
            "key": self.random.choice(("zone", "rack", "size", "nowhere")),
            "operator": operator,
        }
        if operator in ("Gt", "Lt"):
            requirement["key"] = self.random.choice(("size", "zone"))
            requirement["values"] = [self.random.choice(("1", "5", "010", "many", "-1"))]
        elif operator in ("In", "NotIn"):
            values = ("a", "b", "r1", "1", "10", "large", "not valid")
            requirement["values"] = self.random.sample(values, self.random.choice((1, 2)))
        return requirement

    def node_affinity(self, names: tuple[str, ...]) -> Manifest:
        terms = []
        for _ in range(self.random.choice((1, 1, 2))):
            term: Manifest = {}
            if self.likely(0.9):
                number = self.random.choice((1, 1, 2))
                term["matchExpressions"] = [self.node_requirement() for _ in range(number)]
            if self.likely(0.2):
                operator = self.random.choice(("In", "NotIn"))
                term["matchFields"] = [
                    {
                        "key": "metadata.name",
                        "operator": operator,
                        "values": [self.random.choice(names)],
                    }
                ]
            terms.append(term)
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}

    def selector(self) -> Manifest:
        selector: Manifest = {}
        if self.likely(0.6):
            selector["matchLabels"] = {"app": self.random.choice(APPS)}
        if self.likely(0.3):
            operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
            requirement: Manifest = {
                "key": self.random.choice(("app", "tier", "nowhere")),
                "operator": operator,
            }
            if operator in ("In", "NotIn"):
                requirement["values"] = self.random.sample(APPS + TIERS, 2)
            selector["matchExpressions"] = [requirement]
        return selector

    def terms(self) -> Manifest:
        found = []
        for _ in range(self.random.choice((1, 1, 2))):
            keys = (HOST, "zone", "zone", "rack")
            term: Manifest = {"topologyKey": self.random.choice(keys)}
            if self.likely(0.95):
                term["labelSelector"] = self.selector()
            if self.likely(0.3):
                term["namespaces"] = self.random.sample(self.namespaces, 1)
            if not self.old and self.likely(0.25):
                term["namespaceSelector"] = self.random.choice(
                    ({}, {"matchLabels": {"kind": "shared"}})
                )
            found.append(term)
        return {"requiredDuringSchedulingIgnoredDuringExecution": found}

    def spread(self) -> list[Manifest]:
        found = []
        for key in self.random.sample((HOST, "zone", "rack"), self.random.choice((1, 1, 2))):
            constraint: Manifest = {
                "topologyKey": key,
                "maxSkew": self.random.choice((1, 1, 2)),
                "whenUnsatisfiable": ("DoNotSchedule" if self.likely(0.85) else "ScheduleAnyway"),
            }
            if self.likely(0.95):
                constraint["labelSelector"] = self.selector()
                if self.old:  # 1.20 counts all pods for an empty one (K210)
                    constraint["labelSelector"] = constraint["labelSelector"] or {
                        "matchLabels": {"app": "web"}
                    }
            if not self.old:
                if self.likely(0.2) and constraint["whenUnsatisfiable"] == "DoNotSchedule":
                    constraint["minDomains"] = self.random.choice((1, 2, 3))
                if self.likely(0.2) and "labelSelector" in constraint:
                    constraint["matchLabelKeys"] = ["tier"]
                if self.likely(0.2):
                    constraint["nodeAffinityPolicy"] = self.random.choice(("Honor", "Ignore"))
                if self.likely(0.2):
                    constraint["nodeTaintsPolicy"] = self.random.choice(("Honor", "Ignore"))
            found.append(constraint)
        return found

    def ports(self) -> list[Manifest]:
        found = {}
        for _ in range(self.random.choice((1, 1, 2))):
            port: Manifest = {
                "containerPort": 80,
                "hostPort": self.random.choice((8080, 8081)),
                "protocol": self.random.choice(("TCP", "TCP", "UDP")),
            }
            if self.likely(0.5):
                port["hostIP"] = self.random.choice(("0.0.0.0", "127.0.0.1", "10.0.0.1"))
            found[port["hostPort"], port["protocol"], port.get("hostIP")] = port
        return list(found.values())

    def pod(self, name: str, nodes: tuple[str, ...], uid: str = "") -> Manifest:
        container: Manifest = {"name": "main", "image": "pause"}
        if self.likely(0.25):
            container["ports"] = self.ports()
        spec: Manifest = {"containers": [container]}
        if not self.old and self.likely(0.15):
            action = self.random.choice(("Restart", "RestartAllContainers"))
            container["restartPolicyRules"] = [{"action": action}]
        if not self.old and self.likely(0.15):
            spec["hostNetwork"] = self.random.choice((False, True, True))
            spec["hostUsers"] = self.random.choice((False, False, True))
        if self.likely(0.15):
            spec["nodeSelector"] = {"zone": self.random.choice(ZONES)}
        if tolerations := self.tolerations():
            spec["tolerations"] = tolerations
        affinity: Manifest = {}
        if self.likely(0.2):
            affinity["nodeAffinity"] = self.node_affinity(nodes)
        if self.likely(0.3):
            affinity["podAffinity"] = self.terms()
        if self.likely(0.35):
            affinity["podAntiAffinity"] = self.terms()
        if affinity:
            spec["affinity"] = affinity
        if self.likely(0.35):
            spec["topologySpreadConstraints"] = self.spread()
        return {
            "metadata": {
                "name": name,
                "namespace": self.random.choice(self.namespaces),
                "uid": uid or name,
                "labels": self.labels(),
            },
            "spec": spec,
        }
