"""The CERIT-SC log of 2013: a folder of nodes.csv, queues.csv and jobs.csv, compressed or not.

It covers three months of the clusters zewura and zegox under PBS: 44 nodes, walltime classes as
queues, and for every job the wait and the nodes under the real scheduler, for comparison.
"""

from __future__ import annotations

import re
from pathlib import Path

from quadriga.sim.workload.files import Row, fingerprint, read_jobs, required, rows
from quadriga.sim.workload.model import (
    MEMORY,
    MIB,
    MILLI,
    VCORE,
    Job,
    Member,
    NodeSpec,
    QueueSpec,
    Resources,
    Skipped,
    Workload,
    horizon,
    in_order,
    queue_names,
)

#: must accompany the log and every figure taken from it
ACKNOWLEDGEMENT = (
    "The MetaCentrum workload log was graciously provided by the CERIT-SC and the Czech National"
    " Distributed Infrastructure MetaCentrum"
)
CITATION = "D. Klusacek and V. Chlumsky, JSSPP 2018"

#: identifies the log by its 44 nodes, even if only a part of its jobs is present
_FINGERPRINT = "d423a64244c93c18a86edc31260ab75dfaf2efed8aed7b777ea15f054308b0b0"

_NODES = ("node_id", "cluster", "vcores", "memory_mib")
_QUEUES = ("queue",)
_JOBS = (
    "job_id",
    "submit_s",
    "wait_s",
    "runtime_s",
    "user",
    "queue",
    "gang_members",
    "vcores_per_member",
    "memory_mib_per_member",
    "walltime_limit_s",
    "pbs_node_spec",
    "placement_node_cores",
)

# "3", "3:ppn=2:x86_64" or "some.host:ppn=2": a count (or a host, which means one node), then
# attributes, of which only ppn is a size.
_COUNT = re.compile(r"\d{1,6}")
_PPN = re.compile(r"ppn=(\d{1,6})(?:\.\d*)?")


def read_cerit(path: Path | str, *, bad_lines: int = 0) -> Workload:
    """Read the folder `path`. Raises `WorkloadError` naming the file, the line and the reason.

    At most `bad_lines` lines of jobs.csv are skipped because they do not have the format. Jobs
    without a positive runtime are skipped. Memory is what each member requested; PBS did not
    enforce it everywhere.
    """
    folder = Path(path)
    nodes = tuple(_node(row) for row in rows(required(folder, "nodes.csv"), _NODES))
    known = {node.name for node in nodes}
    names = queue_names(row.text("queue") for row in rows(required(folder, "queues.csv"), _QUEUES))
    jobs, skipped, found = read_jobs(
        folder, "jobs.csv", _JOBS, bad_lines, lambda row: _job(row, names, known)
    )
    return Workload(
        name=folder.resolve().name,
        nodes=nodes,
        queues=tuple(QueueSpec(name, original=original) for original, name in names.items()),
        jobs=in_order(jobs),
        skipped=skipped,
        horizon_s=horizon(jobs),
        source=_source(nodes),
        bad_lines=found,
    )


def _source(nodes: tuple[NodeSpec, ...]) -> str:
    """The source of the data; only the known log is named."""
    facts = (
        (node.name, node.attributes["cluster"], node.resources[VCORE], node.resources[MEMORY])
        for node in nodes
    )
    if fingerprint(facts) == _FINGERPRINT:
        return f"CERIT-SC log. {ACKNOWLEDGEMENT} ({CITATION})"
    return "files in the form of the CERIT-SC log"


def member_sizes(spec: str) -> tuple[tuple[int, int], ...]:
    """Return the (count, cores) parts of a PBS node specification; raises `ValueError`.

    ``1+2:ppn=2`` is one member of one core and two members of two. A part without ``ppn`` has one
    core. Fractions of a core are cut as in PBS, and adjacent equal parts are merged.
    """
    parts: list[tuple[int, int]] = []
    for text in spec.partition("#")[0].split("+"):
        head, *attributes = text.split(":")
        count = int(head) if _COUNT.fullmatch(head) else 1
        sizes = [match for attribute in attributes if (match := _PPN.fullmatch(attribute))]
        cores = int(sizes[0][1]) if sizes else 1
        if not head or count < 1 or cores < 1 or len(sizes) > 1:
            raise ValueError(f"the node specification {spec!r} has no size in {text!r}")
        if parts and parts[-1][1] == cores:
            count += parts.pop()[0]
        parts.append((count, cores))
    return tuple(parts)


def _node(row: Row) -> NodeSpec:
    return NodeSpec(
        row.text("node_id"),
        {
            VCORE: row.whole("vcores", 1) * MILLI,
            MEMORY: row.whole("memory_mib", 1) * MIB,
        },
        {"cluster": row.text("cluster")},
    )


def _job(row: Row, names: dict[str, str], nodes: set[str]) -> Job | Skipped:
    if (runtime_s := row.whole("runtime_s")) <= 0:
        return Skipped(row.text("job_id"), f"its runtime is {runtime_s} s")
    queue = row.text("queue")
    if queue not in names:
        raise row.error(f"the queue {queue} is not in queues.csv")
    memory = row.whole("memory_mib_per_member", 0) * MIB
    walltime_s = row.whole("walltime_limit_s", 0)
    members = _members(row, memory)
    return Job(
        job_id=row.text("job_id"),
        submit_s=row.whole("submit_s", 0),
        runtime_s=runtime_s,
        user=row.text("user"),
        queue=names[queue],
        members=members,
        walltime_s=walltime_s or None,
        recorded_wait_s=row.whole("wait_s", 0),
        placement=_placement(row, members, memory, nodes),
    )


def _members(row: Row, memory: int) -> tuple[Member, ...]:
    count = row.whole("gang_members", 1)
    mean = row.real("vcores_per_member")
    try:
        sizes = member_sizes(row.text("pbs_node_spec"))
    except ValueError as error:
        raise row.error(str(error)) from None
    pods = sum(part[0] for part in sizes)
    cores = sum(part[0] * part[1] for part in sizes)
    # the mean has three decimals
    if pods != count or abs(cores - mean * count) > 0.001 * count:
        raise row.error(
            f"the node specification asks for {cores} cores on {pods} nodes,"
            f" the columns for {count} members of {mean:g}"
        )
    return tuple(Member(n, {VCORE: size * MILLI, MEMORY: memory}) for n, size in sizes)


def _placement(
    row: Row, members: tuple[Member, ...], memory: int, nodes: set[str]
) -> tuple[tuple[str, Resources], ...]:
    """One (node, share) for each pod, in the order of `members`; the log is ordered by node."""
    placed: list[tuple[str, Resources]] = []
    for text in row.text("placement_node_cores").split(";"):
        node, _, cores = text.partition(":")
        if node not in nodes:
            raise row.error(f"the placement {text!r} names a node that is not in nodes.csv")
        if not _COUNT.fullmatch(cores) or int(cores) < 1:
            raise row.error(f"the placement {text!r} is not node:cores")
        placed.append((node, {VCORE: int(cores) * MILLI, MEMORY: memory}))
    if len(members) == 1 and len(placed) == members[0].count:
        alike = members[0].resources
        if all(share == alike for _, share in placed):
            return tuple(placed)
    ordered: list[tuple[str, Resources]] = []
    for member in members:
        fitting = [entry for entry in placed if entry[1] == member.resources][: member.count]
        ordered += fitting
        for entry in fitting:
            placed.remove(entry)
    if placed or len(ordered) != sum(member.count for member in members):
        raise row.error("the placement is not one node for each member of the node specification")
    return tuple(ordered)
