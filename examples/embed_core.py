"""The scheduler core in a program of yours: messages and time in, messages out.

The core has no thread, no socket and no clock. Your program applies messages of the scheduler
interface (SI) with the time in nanoseconds, calls ``schedule``, and delivers the messages that come
out. Run it: python examples/embed_core.py
"""

from collections.abc import Iterable

from quadriga import si
from quadriga.core import Options, Output, Scheduler

SECOND = 1_000_000_000

QUEUES = """
partitions:
  - name: default
    nodesortpolicy:
      type: bestfit
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: research
            resources:
              max: {vcore: 8, memory: 16G}
"""


def resource(cores: int, gib: int) -> si.Resource:
    """A resource of the protocol: vcore is in milli, memory in bytes."""
    amounts = {"vcore": cores * 1000, "memory": gib << 30}
    return si.Resource(resources={kind: si.Quantity(value=n) for kind, n in amounts.items()})


def show(outputs: Iterable[Output]) -> None:
    for rm_id, message in outputs:
        text = " ".join(str(message).split())
        print(f"  to {rm_id}: {type(message).__name__} {{ {text} }}")


def main() -> None:
    scheduler = Scheduler(Options())
    now = 0

    print("a resource manager, a node, an application")
    show(scheduler.apply(si.RegisterResourceManagerRequest(rmID="rm", config=QUEUES), now))
    node = si.NodeInfo(nodeID="n1", action=si.NodeInfo.CREATE, schedulableResource=resource(4, 8))
    show(scheduler.apply(si.NodeRequest(rmID="rm", nodes=[node]), now))
    application = si.AddApplicationRequest(
        applicationID="app",
        queueName="root.research",
        partitionName="default",
        ugi=si.UserGroupInformation(user="ann", groups=["staff"]),
    )
    show(scheduler.apply(si.ApplicationRequest(rmID="rm", new=[application]), now))

    print("it asks for two containers, one of which is too large for the node")
    asks = [
        si.AllocationAsk(
            allocationKey=key,
            applicationID="app",
            partitionName="default",
            resourceAsk=resource(cores, 1),
            maxAllocations=1,
        )
        for key, cores in (("small", 2), ("large", 6))
    ]
    show(scheduler.apply(si.AllocationRequest(rmID="rm", asks=asks), now))
    show(scheduler.schedule(now))

    print("why the large one waits")
    for reason in scheduler.explain("app", "large").reasons:
        print(f"  {reason}")

    print("the small one stops; half a minute after its last ask the application ends")
    now += 60 * SECOND
    show(scheduler.advance(now))  # first the timers of that minute
    requests = si.AllocationReleasesRequest(
        allocationsToRelease=[
            si.AllocationRelease(
                partitionName="default",
                applicationID="app",
                allocationKey="small",
                terminationType=si.TerminationType.STOPPED_BY_RM,
            )
        ],
        allocationAsksToRelease=[
            si.AllocationAskRelease(
                partitionName="default",
                applicationID="app",
                allocationKey="large",
                terminationType=si.TerminationType.STOPPED_BY_RM,
            )
        ],
    )
    show(scheduler.apply(si.AllocationRequest(rmID="rm", releases=requests), now))
    print(f"the next timer rings at {scheduler.next_deadline()} ns")
    now += 30 * SECOND
    show(scheduler.advance(now))

    print("what happened to the application")
    for record in scheduler.story("application/app"):
        print(f"  {record}")


if __name__ == "__main__":
    main()
