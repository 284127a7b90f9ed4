"""YuniKorn's built web UI, served from a folder at /."""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from quadriga.web.responses import API

#: first segments of API paths; unknown paths below them get 404, not the UI
_NOT_OURS = {each.strip("/") for each in API}


class WebUI(StaticFiles):
    """Serves the files of ``folder``, and its ``index.html`` for every other path, since the UI
    does its own routing. Files outside the folder are not served, not even through links."""

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
