"""Quadriga: a cluster scheduler core whose every lifecycle is an explicit finite state machine.

``quadriga.fsm`` has the engine for lifecycles and the scheduler's own, ``quadriga.si`` the messages,
``quadriga.core`` the scheduler, ``quadriga.sim`` the simulator, ``quadriga.diagrams`` the pictures,
``quadriga.web`` and ``quadriga.cli`` the service and the command; ``quadriga.base`` has what all of them
need. None of them is imported with ``quadriga``. The distribution ``quadriga-fsm`` contains the engine and
the pictures, with ``quadriga.base``.

``quadriga.__version__`` is the version of what is installed.
"""

from pkgutil import extend_path

# The engine and the rest may be installed in different folders, for example the engine beside the
# interpreter and the rest in a virtual environment that also sees that folder.
__path__ = extend_path(__path__, __name__)

__all__ = ["__version__"]

__version__: str


def __getattr__(name: str) -> str:
    # Reading the metadata takes a millisecond, which `quadriga --help` need not wait for.
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("quadriga")
    except PackageNotFoundError:
        return version("quadriga-fsm")
