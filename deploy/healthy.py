"""Whether the scheduler in this container is alive: exit code 0, or 1 with the reason.

Asks `/livez` at the address in `QUADRIGA_HEALTH_URL`, by default the port of `quadriga serve` on
loopback. With TLS give the https address; whose certificate it is does not matter here, since
nothing is told and only "alive" is believed.
"""

import os
import ssl
import sys
import urllib.request

URL = os.environ.get("QUADRIGA_HEALTH_URL", "http://127.0.0.1:9080/livez")

context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
# No proxy is between us and ourselves.
opener = urllib.request.build_opener(
    urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
)
try:
    with opener.open(URL, timeout=2) as answer:
        answer.read(1)
except OSError as error:
    sys.exit(f"{URL}: {error}")
