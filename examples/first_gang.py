"""A first gang, with the scheduler in your program: it waits, starts whole, and gets its real pods.

Two nodes of four cores, on one of which another application has two cores. The gang has four members of
two cores each. Run it: python examples/first_gang.py
"""

from collections.abc import Iterable

from quadriga import si
from quadriga.core import Options, Output, Scheduler

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
"""

Request = (
    si.RegisterResourceManagerRequest
    | si.NodeRequest
    | si.ApplicationRequest
    | si.AllocationRequest
)

RM = "rm"
MEMBERS = 4


def cores(number: int) -> si.Resource:
    """An amount in the protocol's unit, thousandths of a core."""
    return si.Resource(resources={"vcore": si.Quantity(value=1000 * number)})


def application(name: str, gang: si.Resource | None = None) -> si.ApplicationRequest:
    """A new application; a gang announces what all its placeholders ask for together."""
    new = si.AddApplicationRequest(
        applicationID=name,
        queueName="root.research",
        ugi=si.UserGroupInformation(user="ann"),
        placeholderAsk=gang,
        gangSchedulingStyle="Soft",
    )
    return si.ApplicationRequest(rmID=RM, new=[new])


def ask(app: str, *keys: str, placeholder: bool = False, group: str = "") -> si.AllocationRequest:
    """Asks for two cores each."""
    asks = [
        si.AllocationAsk(
            applicationID=app,
            allocationKey=key,
            resourceAsk=cores(2),
            maxAllocations=1,
            placeholder=placeholder,
            taskGroupName=group,
        )
        for key in keys
    ]
    return si.AllocationRequest(rmID=RM, asks=asks)


def stop(
    *ended: si.Allocation | si.AllocationRelease, why: si.TerminationType
) -> si.AllocationRequest:
    """Tell the scheduler that these pods have ended."""
    releases = [
        si.AllocationRelease(applicationID=e.applicationID, UUID=e.UUID, terminationType=why)
        for e in ended
    ]
    return si.AllocationRequest(
        rmID=RM, releases=si.AllocationReleasesRequest(allocationsToRelease=releases)
    )


class ResourceManager:
    """Starts and stops pods as the scheduler says. Here a pod is an entry of a dictionary."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(Options())
        self.pods: dict[str, si.Allocation] = {}

    def send(self, *requests: Request) -> None:
        """Apply requests, let the scheduler decide, and do what it says until it says nothing new."""
        for request in requests:
            self.hear(self.scheduler.apply(request, now=0))
        self.hear(self.scheduler.schedule(now=0))

    def hear(self, outputs: Iterable[Output]) -> None:
        for _, message in outputs:
            if isinstance(message, si.ApplicationResponse):
                for app in message.updated:
                    print(f"  {app.applicationID} is {app.state}")
            if isinstance(message, si.AllocationResponse):
                for pod in message.new:
                    kind = "placeholder" if pod.placeholder else "pod"
                    print(f"  start {kind} {pod.allocationKey} on {pod.nodeID}")
                    self.pods[pod.UUID] = pod
                for release in message.released:
                    if self.pods.pop(release.UUID, None) is None:
                        continue  # the scheduler repeats what it was told
                    print(f"  stop {release.allocationKey}, and confirm that it has ended")
                    self.send(stop(release, why=release.terminationType))


def main() -> None:
    rm = ResourceManager()
    nodes = [
        si.NodeInfo(nodeID=name, action=si.NodeInfo.CREATE, schedulableResource=cores(4))
        for name in ("n1", "n2")
    ]
    rm.send(
        si.RegisterResourceManagerRequest(rmID=RM, config=QUEUES),
        si.NodeRequest(rmID=RM, nodes=nodes),
    )

    print("another application takes two cores")
    rm.send(application("other"), ask("other", "single"))

    print("the gang has room for three of its four members, so it gets nothing")
    placeholders = [f"placeholder-{n}" for n in range(MEMBERS)]
    rm.send(
        application("gang", gang=cores(2 * MEMBERS)),
        ask("gang", *placeholders, placeholder=True, group="workers"),
    )
    print(f"  why: {rm.scheduler.explain('gang', 'placeholder-0').verdict}")

    print("the other application ends, and the gang starts whole")
    single = next(pod for pod in rm.pods.values() if pod.applicationID == "other")
    del rm.pods[single.UUID]
    rm.send(stop(single, why=si.TerminationType.STOPPED_BY_RM))

    print("its real pods ask, and each takes the place of a placeholder")
    rm.send(ask("gang", *(f"worker-{n}" for n in range(MEMBERS)), group="workers"))

    print("the life of the gang")
    for record in rm.scheduler.story("application/gang"):
        print(f"  {record}")


if __name__ == "__main__":
    main()
