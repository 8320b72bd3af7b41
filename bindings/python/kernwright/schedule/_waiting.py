"""`await task`."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from typing import Any


class _Ends:
    """Tasks that coroutines of one event loop wait for. Those that end together wake it once."""

    def __init__(self) -> None:
        self.waiting = 0
        self.over: deque[asyncio.Future[None]] = deque()
        self.is_told = False

    async def wait(self, task: Any, loop: asyncio.AbstractEventLoop) -> None:
        future = loop.create_future()

        def wake(_: Any) -> None:
            if future.done():  # cancelled
                return
            self.over.append(future)
            if not self.is_told:
                self.is_told = True
                try:
                    loop.call_soon_threadsafe(self.tell)
                except RuntimeError:  # the loop is closed: nobody waits any more
                    self.over.clear()

        task.add_done_callback(wake)
        self.waiting += 1
        try:
            await future
        finally:
            self.waiting -= 1

    def tell(self) -> None:
        self.is_told = False  # before the look: whoever comes later tells again
        while self.over:
            future = self.over.popleft()
            if not future.done():
                future.set_result(None)


_ends: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Ends] = weakref.WeakKeyDictionary()


async def wait_in_loop(task: Any) -> Any:
    """The result of the task; the event loop goes on meanwhile. When the waiting coroutine is
    cancelled, so is the task."""
    try:
        while task._stepped and not task._wait_shortly():
            await asyncio.sleep(0)
        if not task.done():
            loop = asyncio.get_running_loop()
            ends = _ends.setdefault(loop, _Ends())
            # A loop that sleeps takes longer to come back than small work takes.
            if ends.waiting or not task._wait_shortly():
                await ends.wait(task, loop)
    except asyncio.CancelledError:
        task.cancel()
        raise
    return task.result()
