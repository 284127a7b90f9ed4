"""Validation of queue configurations (K165), by the core in this process or by one elsewhere."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

import aiohttp

from quadriga.core.views import Views
from quadriga.k8s.tuning import TUNING

_log = logging.getLogger("quadriga.kubernetes.admission")


#: returns the reason against a configuration, or ""
Validator = Callable[[str], Awaitable[str]]


async def ask_core(text: str) -> str:
    """Validate with the core's own check, in a thread beside the event loop."""
    found = await asyncio.to_thread(Views.validate_configuration, text)
    return "" if found["allowed"] else str(found["reason"]) or "the configuration is not valid"


def elsewhere(session: aiohttp.ClientSession, address: Callable[[], str]) -> Validator:
    """Return a validator that asks a core behind ``host:port``. If that is not reached or answers oddly, the
    check of this program is used: the result does not depend on running state."""

    async def validate(text: str) -> str:
        """Ask the core, else use the check of this program."""
        url = f"http://{address()}/ws/v1/validate-conf"
        try:
            timeout = aiohttp.ClientTimeout(total=TUNING.validator_timeout_s)
            async with session.post(url, data=text.encode(), timeout=timeout) as response:
                body = await response.content.read(TUNING.validator_bytes)
                if response.status != 200:
                    raise ValueError(f"status {response.status}")
            found = json.loads(body)
            if not isinstance(found, dict) or not isinstance(found.get("allowed"), bool):
                raise ValueError("it says neither yes nor no")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, RecursionError) as error:
            reason = str(error) or "no answer in time"
            _log.info("%s has not answered, the configuration is checked here: %s", url, reason)
            return await ask_core(text)
        return "" if found["allowed"] else str(found.get("reason") or "it is not valid")

    return validate
