"""The filters as K119 to K128 say them, on manifests as the API writes them: everything is looked at anew
for each question, and nothing is counted ahead. The judge of the cache's counters."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Manifest = dict[str, Any]

KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", re.A)
VALUE = re.compile(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?", re.A)


@dataclass
class NaiveCluster:
    """Manifests of nodes by name and of pods by uid, labels of namespaces, and where pods are assumed."""

    nodes: dict[str, Manifest] = field(default_factory=dict)
    pods: dict[str, Manifest] = field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)
    #: as kube-scheduler 1.20: spread counts the pods of all nodes that have a domain's value, also of those
    #: that the pod cannot use or that lack another key, and an empty selector selects all pods
    old: bool = False

    def refusals(self, uid: str, node: str) -> list[str]:
        """The names of the filters that refuse, in their order, each once."""
        pod, there = self.pods[uid], self.nodes[node]
        others = self._others(uid)
        found = [
            *(["NodeUnschedulable"] if _cordoned(pod, there) else []),
            *(["NodeName"] if pod["spec"].get("nodeName", node) != node else []),
            *(["TaintToleration"] if _tainted(pod, there) else []),
            *([] if _matches_node(pod, there) else ["NodeAffinity"]),
            *(["NodeDeclaredFeatures"] if self._lacks_features(pod, there) else []),
            *(["NodePorts"] if self._ports(pod, node, others) else []),
            *(["PodTopologySpread"] if self._spread(pod, there, others) else []),
        ]
        if (
            self._affinity(pod, there, others)
            or self._anti(pod, there, others)
            or self._others_anti(pod, there, others)
        ):
            found.append("InterPodAffinity")
        return found

    def _others(self, uid: str) -> list[tuple[Manifest, str]]:
        """The other pods that count, with the names of their nodes."""
        found = []
        for other, pod in self.pods.items():
            node = pod["spec"].get("nodeName") or self.assumed.get(other)
            ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
            if node and other != uid and not ended:
                found.append((pod, node))
        return found

    def _lacks_features(self, pod: Manifest, there: Manifest) -> bool:
        """K210. The two features that kube-scheduler 1.36 looks for when it places a pod."""
        declared = {n: e.get("status", {}).get("declaredFeatures") for n, e in self.nodes.items()}
        if not any(declared.values()):
            return False
        spec, needed = pod["spec"], set()
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            for rule in container.get("restartPolicyRules", []):
                if rule["action"] == "RestartAllContainers":
                    needed.add("RestartAllContainersOnContainerExits")
        if spec.get("hostNetwork") and spec.get("hostUsers") is False:
            needed.add("UserNamespacesHostNetworkSupport")
        return not needed <= set(declared[there["metadata"]["name"]] or ())

    def _label(self, node: str, key: str) -> str | None:
        found = self.nodes.get(node)
        return None if found is None else found["metadata"].get("labels", {}).get(key)

    def _ports(self, pod: Manifest, node: str, others: list[tuple[Manifest, str]]) -> bool:
        taken = [port for other, there in others if there == node for port in _ports(other)]
        for protocol, number, address in _ports(pod):
            for other in taken:
                if (protocol, number) == other[:2]:
                    if address == other[2] or "0.0.0.0" in (address, other[2]):
                        return True
        return False

    def _spread(self, pod: Manifest, there: Manifest, others: list[tuple[Manifest, str]]) -> bool:
        constraints = [
            each
            for each in pod["spec"].get("topologySpreadConstraints", ())
            if each["whenUnsatisfiable"] == "DoNotSchedule"
        ]
        for each in constraints:
            key, namespace = each["topologyKey"], pod["metadata"]["namespace"]

            def selected(labels: dict[str, str], each: Manifest = each) -> bool:
                own = pod["metadata"].get("labels", {})
                for key in each.get("matchLabelKeys", ()):
                    if key in own and labels.get(key) != own[key]:
                        return False
                selector = each.get("labelSelector")
                says = [*(selector or {}).values(), set(own) & set(each.get("matchLabelKeys", ()))]
                if not self.old and not any(says):  # K210: an empty one selects nothing
                    return False
                return selects(selector, labels)

            domains: dict[str, list[str]] = {}
            for node in self.nodes.values():
                labels = node["metadata"].get("labels", {})
                if any(other["topologyKey"] not in labels for other in constraints):
                    continue
                if each.get("nodeAffinityPolicy") != "Ignore" and not _matches_node(pod, node):
                    continue
                if each.get("nodeTaintsPolicy") == "Honor" and _tainted(pod, node):
                    continue
                domains.setdefault(labels[key], []).append(node["metadata"]["name"])
            if self.old:
                for domain in domains:
                    domains[domain] = [n for n in self.nodes if self._label(n, key) == domain]
            counts = {
                domain: sum(
                    1
                    for other, place in others
                    if place in nodes
                    and other["metadata"]["namespace"] == namespace
                    and "deletionTimestamp" not in other["metadata"]
                    and selected(other["metadata"].get("labels", {}))
                )
                for domain, nodes in domains.items()
            }
            value = there["metadata"].get("labels", {}).get(key)
            if value is None:
                return True
            fewest = min(counts.values(), default=0)
            if len(counts) < each.get("minDomains", 1):
                fewest = 0
            own = selected(pod["metadata"].get("labels", {}))
            if counts.get(value, 0) + own - fewest > each["maxSkew"]:
                return True
        return False

    def _affinity(self, pod: Manifest, there: Manifest, others: list[tuple[Manifest, str]]) -> bool:
        terms = _terms(pod, "podAffinity")
        labels = there["metadata"].get("labels", {})
        if not terms:
            return False
        counts: Counter[tuple[str, str]] = Counter()
        for other, place in others:
            if all(self._about(term, pod, other) for term in terms):
                for term in terms:
                    value = self._label(place, term["topologyKey"])
                    if value is not None:
                        counts[term["topologyKey"], value] += 1
        if any(term["topologyKey"] not in labels for term in terms):
            return True
        first = not counts and all(self._about(term, pod, pod) for term in terms)
        there_too = all((t["topologyKey"], labels[t["topologyKey"]]) in counts for t in terms)
        return not (there_too or first)

    def _anti(self, pod: Manifest, there: Manifest, others: list[tuple[Manifest, str]]) -> bool:
        labels = there["metadata"].get("labels", {})
        for term in _terms(pod, "podAntiAffinity"):
            value = labels.get(term["topologyKey"])
            for other, place in others:
                if value is not None and self._label(place, term["topologyKey"]) == value:
                    if self._about(term, pod, other):
                        return True
        return False

    def _others_anti(
        self, pod: Manifest, there: Manifest, others: list[tuple[Manifest, str]]
    ) -> bool:
        labels = there["metadata"].get("labels", {})
        for other, place in others:
            for term in _terms(other, "podAntiAffinity"):
                value = labels.get(term["topologyKey"])
                if value is not None and self._label(place, term["topologyKey"]) == value:
                    if self._about(term, other, pod):
                        return True
        return False

    def _about(self, term: Manifest, owner: Manifest, other: Manifest) -> bool:
        """Whether the term, which ``owner`` has, is about the other pod."""
        namespace = other["metadata"]["namespace"]
        names, chosen = term.get("namespaces") or [], term.get("namespaceSelector")
        if not names and chosen is None:
            names = [owner["metadata"]["namespace"]]
        if namespace not in names:
            if chosen is None or not selects(chosen, self.namespaces.get(namespace, {})):
                return False
        return selects(term.get("labelSelector"), other["metadata"].get("labels", {}))


def _terms(pod: Manifest, kind: str) -> list[Manifest]:
    affinity = pod["spec"].get("affinity", {}).get(kind, {})
    return list(affinity.get("requiredDuringSchedulingIgnoredDuringExecution", ()))


def _ports(pod: Manifest) -> Iterator[tuple[str, int, str]]:
    sidecars = [
        c for c in pod["spec"].get("initContainers", ()) if c.get("restartPolicy") == "Always"
    ]
    for container in [*pod["spec"].get("containers", ()), *sidecars]:
        for port in container.get("ports", ()):
            if port.get("hostPort"):
                address = port.get("hostIP") or "0.0.0.0"
                yield port.get("protocol", "TCP"), port["hostPort"], address


def selects(selector: Manifest | None, labels: dict[str, str]) -> bool:
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    return all(_meets(each, labels) for each in selector.get("matchExpressions", ()))


def _meets(requirement: Manifest, labels: dict[str, str]) -> bool:
    key, values = requirement["key"], requirement.get("values", ())
    if (requirement["operator"] in ("Exists", "DoesNotExist")) == bool(values):
        return False  # no API server takes it
    match requirement["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt" | "Lt" as operator:
            if len(values) != 1 or not all(map(_is_number, (labels.get(key, ""), values[0]))):
                return False
            number, bound = int(labels[key]), int(values[0])
            return number > bound if operator == "Gt" else number < bound
    return False


def _is_number(text: str) -> bool:
    return bool(re.fullmatch("-?[0-9]+", text)) and abs(int(text)) < 2**63


def _matches_node(pod: Manifest, node: Manifest) -> bool:
    labels = node["metadata"].get("labels", {})
    wanted = pod["spec"].get("nodeSelector", {})
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term_matches(term, node, labels) for term in required["nodeSelectorTerms"])


def _term_matches(term: Manifest, node: Manifest, labels: dict[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions", []), term.get("matchFields", [])
    if not expressions and not fields:
        return False
    for each in expressions:
        if not KEY.fullmatch(each["key"]):
            return False
        if not all(VALUE.fullmatch(value) for value in each.get("values", ())):
            return False
        if each["operator"] in ("Gt", "Lt") and "-" in "".join(each.get("values", ())):
            return False
    name = {"metadata.name": node["metadata"]["name"]}
    return all(_meets(e, labels) for e in expressions) and all(_meets(e, name) for e in fields)


def _tolerates(toleration: Manifest, taint: Manifest) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    match toleration.get("operator"):
        case "Exists":
            return True
        case "Gt" | "Lt" as operator:
            pair = taint.get("value", ""), toleration.get("value", "")
            if not toleration.get("key") or not all(map(_is_number, pair)):
                return False
            return (int(pair[0]) > int(pair[1])) == (operator == "Gt") and pair[0] != pair[1]
        case "Equal" | None:
            same = toleration.get("value", "") == taint.get("value", "")
            return bool(toleration.get("key")) and same
    return False


def _tainted(pod: Manifest, node: Manifest) -> bool:
    tolerations = pod["spec"].get("tolerations", ())
    return any(
        not any(_tolerates(each, taint) for each in tolerations)
        for taint in node.get("spec", {}).get("taints", ())
        if taint["effect"] in ("NoSchedule", "NoExecute")
    )


def _cordoned(pod: Manifest, node: Manifest) -> bool:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    tolerations = pod["spec"].get("tolerations", ())
    cordoned = node.get("spec", {}).get("unschedulable", False)
    return cordoned and not any(_tolerates(each, taint) for each in tolerations)
