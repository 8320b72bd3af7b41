"""`await task`."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any


async def wait_in_loop(task: Any) -> Any:
    """The result of the task; the event loop goes on meanwhile. When the waiting coroutine is
    cancelled, so is the task."""
    if not task.done():
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def tell() -> None:
            if not over.done():
                over.set_result(None)

        def wake(_: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(tell)

        task.add_done_callback(wake)
        try:
            await over
        except asyncio.CancelledError:
            task.cancel()
            raise
    return task.result()
