"""YuniKorn's web UI as it was built, served from a folder at / (section 3)."""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from quadriga.web.answers import API

__all__ = ["WebUI"]

#: what is the API's stays the API's, also where there is nothing
_NOT_OURS = {each.strip("/") for each in API}


class WebUI(StaticFiles):
    """The files of ``folder``, and its ``index.html`` for every path that is none: the UI finds its way
    itself. Nothing outside of the folder is served, nor what a link in it points to outside."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "index.html").is_file():
            raise ValueError(f"{folder} holds no index.html: it is not a web UI as built")
        super().__init__(directory=folder, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            return await super().get_response(path, scope)
        except HTTPException as error:
            first = path.replace("\\", "/").partition("/")[0]
            if error.status_code != 404 or first in _NOT_OURS:
                raise
            return await super().get_response("index.html", scope)
