"""One object of yours lives one of Quadriga's lifecycles.

Nothing is registered and nothing is inherited: an object with a ``state``, a ``key`` and the facts
that the table's guards look at will do. Run it: python examples/embed_lifecycle.py
"""

from quadriga.fsm import ASK, InvalidTransition


class Request:
    """Three machines wanted. ``pending`` is what the guard of ``allocate`` looks at."""

    __slots__ = ("key", "pending", "state")

    def __init__(self, key: str, machines: int) -> None:
        self.key = key
        self.state = ASK.initial
        self.pending = machines


def main() -> None:
    request = Request("request-1", machines=3)
    ASK.fire(request, "submit")
    print(f"{request.key} is {request.state} and wants {request.pending}")

    while request.state == "Pending":
        # The guard looks at the number before this allocation.
        ASK.fire(request, "allocate")
        request.pending -= 1
        print(f"one allocated: {request.state}, {request.pending} to go")

    # What the table does not have is an error that says so, and changes nothing.
    try:
        ASK.fire(request, "park")
    except InvalidTransition as error:
        print(f"refused: {error}")
    print(f"{request.key} is {request.state}")


if __name__ == "__main__":
    main()
