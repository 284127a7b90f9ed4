"""An object of your program with one of Quadriga's lifecycles.

The object is not registered and inherits nothing. It needs a ``state``, a ``key``, and the
attributes that the guards of the table read. Run it: python examples/embed_lifecycle.py
"""

from quadriga.fsm import ASK, InvalidTransition


class Request:
    """A request for three machines. The guard of ``allocate`` reads ``pending``."""

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
        # The guard reads the number as it was before this allocation.
        ASK.fire(request, "allocate")
        request.pending -= 1
        print(f"one allocated: {request.state}, {request.pending} to go")

    # A trigger that the table does not allow is an error and changes nothing.
    try:
        ASK.fire(request, "park")
    except InvalidTransition as error:
        print(f"refused: {error}")
    print(f"{request.key} is {request.state}")


if __name__ == "__main__":
    main()
