"""Print the OpenAPI document of a server with all its routes: ``python -m quadriga.web.print_openapi``.

docs/openapi.json is that output.
"""

from __future__ import annotations

import sys

from quadriga.core.driver.service import SchedulerService
from quadriga.core.views import Views
from quadriga.web.app import create_app
from quadriga.web.openapi import as_text, document


def main() -> None:
    service = SchedulerService(manual=True)
    app = create_app(service, Views(service.scheduler))
    sys.stdout.write(as_text(document(app.routes)))


if __name__ == "__main__":
    main()
