"""`quadriga kubernetes` as a program, which asks a witness before and after every message between the shim
and the core whether it may go on. The first argument is the witness's port, the others are the command's.

A line to the witness: ``before`` or ``after``, and the parts of the message. The answer is one byte; who is
killed gets none.
"""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from quadriga.cli.main import main
from quadriga.k8s.driver import kubernetes as driver
from quadriga.k8s.driver.core_callback import CoreCallback
from quadriga.k8s.driver.core_sender import CoreSender
from quadriga.si import SchedulerAPI, TerminationType


class Witness:
    def __init__(self, port: int) -> None:
        self._connection = socket.create_connection(("127.0.0.1", port))
        self._lock = threading.Lock()

    def ask(self, when: str, parts: str) -> None:
        with self._lock:
            self._connection.sendall(f"{when} {parts}\n".encode())
            self._connection.recv(1)

    def around(self, parts: str, call: Callable[..., Any], *arguments: Any) -> Any:
        self.ask("before", parts)
        result = call(*arguments)
        self.ask("after", parts)
        return result


def parts_of(message: Any) -> str:
    """What is in the message: ``AllocationResponse.new AllocationResponse.released.TIMEOUT``."""
    name = type(message).__name__
    return " ".join(sorted(set(_parts(message, name)))) or name


def _parts(message: Any, name: str) -> Iterator[str]:
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        below = f"{name}.{field.name}"
        if hasattr(value, "ListFields"):
            yield from _parts(value, below)
            continue
        for each in value:
            if hasattr(each, "terminationType"):
                yield f"{below}.{TerminationType.Name(each.terminationType)}"
            elif hasattr(each, "action"):
                yield f"{below}.{type(each).ActionFromRM.Name(each.action)}"
            elif hasattr(each, "placeholder"):
                yield f"{below}.{'placeholder' if each.placeholder else 'real'}"
            else:
                yield below


def watch(witness: Witness) -> None:
    """Put the witness between the shim and its core."""

    class Asked:
        """The core."""

        def __init__(self, core: SchedulerAPI) -> None:
            self._core = core

        def __getattr__(self, name: str) -> Callable[..., Any]:
            call = getattr(self._core, name)
            return lambda message, *more: witness.around(parts_of(message), call, message, *more)

    class Sender(CoreSender):
        def __init__(self, scheduler: SchedulerAPI, *more: Any, **named: Any) -> None:
            super().__init__(Asked(scheduler), *more, **named)  # type: ignore[arg-type]

    class Callback(CoreCallback):
        def update_allocation(self, response: Any) -> None:
            witness.around(parts_of(response), super().update_allocation, response)

        def update_application(self, response: Any) -> None:
            witness.around(parts_of(response), super().update_application, response)

        def update_node(self, response: Any) -> None:
            witness.around(parts_of(response), super().update_node, response)

        def predicates(self, args: Any) -> str | None:
            answer: str | None = witness.around("predicates", super().predicates, args)
            return answer

        def update_container_scheduling_state(self, request: Any) -> None:
            call = super().update_container_scheduling_state
            witness.around(type(request).__name__, call, request)

    driver.CoreSender, driver.CoreCallback = Sender, Callback  # type: ignore[misc]


if __name__ == "__main__":
    watch(Witness(int(sys.argv[1])))
    sys.exit(main(sys.argv[2:]))
