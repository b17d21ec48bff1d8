"""Reads what may take a while, a disk or an import, beside the window's thread."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Signal

from twinstudio.gui.notices import Notices
from twinstudio.model.errors import TwinstudioError

_PATIENCE = 1.0
_COMMAND = "command "
Then = Callable[[Any], object]
Failed = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class _Wish:
    slot: str
    number: int
    call: Callable[[], Any]
    then: Then
    failed: Failed


@dataclass(frozen=True, slots=True)
class _Answer:
    wish: _Wish
    value: Any
    error: BaseException | None


class Reader(QObject):
    """One thread, begun when first asked. In each slot only the newest question counts.

    Answers arrive in the window's thread. The thread is a daemon, so that an import
    that never returns cannot keep the program from ending.
    """

    _arrived = Signal(object)

    def __init__(self, notices: Notices, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._notices = notices
        self._newest: dict[str, int] = {}
        self._wishes: queue.SimpleQueue[_Wish | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._arrived.connect(self._deliver)

    def ask(self, slot: str, call: Callable[[], Any], then: Then, failed: Failed) -> None:
        """Have `call` made beside the window; `then` gets what it returns, `failed` why not."""
        if self._closed:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="window-reader", daemon=True)
            self._thread.start()
        self._wishes.put(self._wish(slot, call, then, failed))

    def follow(self, future: "Future[object] | None", then: Then, failed: Failed) -> None:
        """Hand on how a command ended, as `ask` does; None is a command that was not begun."""
        if future is None or self._closed:
            return
        wish = self._wish(f"{_COMMAND}{id(future)}", future.result, then, failed)
        future.add_done_callback(lambda _done: self._make(wish))

    def forget(self, slot: str) -> None:
        """No answer to what was asked in `slot` is wanted any more."""
        self._newest[slot] = self._newest.get(slot, 0) + 1

    def close(self) -> None:
        """Hear no more answers, and wait a moment for the thread."""
        self._closed = True
        self._wishes.put(None)
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    def _wish(self, slot: str, call: Callable[[], Any], then: Then, failed: Failed) -> _Wish:
        self.forget(slot)
        return _Wish(slot, self._newest[slot], call, then, failed)

    def _work(self) -> None:
        while True:
            wish = self._wishes.get()
            if wish is None:
                return
            if self._newest[wish.slot] == wish.number:
                self._make(wish)

    def _make(self, wish: _Wish) -> None:
        value, error = None, None
        try:
            value = wish.call()
        except BaseException as raised:  # noqa: BLE001 - handed on, a plugin may raise anything
            error = raised
        if not self._closed:
            self._arrived.emit(_Answer(wish, value, error))

    def _deliver(self, answer: _Answer) -> None:
        wish, error = answer.wish, answer.error
        if self._closed or self._newest[wish.slot] != wish.number:
            return
        command = wish.slot.startswith(_COMMAND)
        if command:
            del self._newest[wish.slot]
        if error is None:
            wish.then(answer.value)
        elif isinstance(error, TwinstudioError):
            wish.failed(str(error))
        else:
            text = f"a fault: {type(error).__name__}: {error}"
            if not command:  # of commands the runner tells
                self._notices.say("alarm", wish.slot, text)
            wish.failed(text)
