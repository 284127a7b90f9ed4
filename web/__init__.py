"""The REST interface, the metrics and the web pages of a scheduler service."""

from importlib.util import find_spec

if find_spec("starlette") is None:
    raise ImportError(
        "quadriga.web needs Starlette and uvicorn: pip install '.[web]' in a checkout of Quadriga"
    )
