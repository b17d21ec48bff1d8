"""Metrics of plugins on the sliding window, while a session runs.

Each has a thread that mostly waits and a process that measures: what a plugin does
costs the window, the twin and the other metrics nothing but processor time.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from msgspec import structs

from twinstudio.model.errors import PluginError
from twinstudio.model.measured import Measured
from twinstudio.model.pair import Pair
from twinstudio.model.views import MetricView
from twinstudio.plugin.catalog import Catalog
from twinstudio.session.journal import Journal
from twinstudio.session.measuring import Measuring

EVERY_SECONDS = 1.0
LIMIT_SECONDS = 5.0
"""A metric that takes longer for one answer is taken out."""
MOST = 8
_SHARE = 10.0
"""Gathering the samples of a long window may take one part in so many of the time."""


class LiveMetrics:
    """Those the user chose; at most `MOST`, each asked at most once a second.

    One that has not finished is not asked again before it has. Thread-safe.
    """

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        recent: Callable[[], Pair | None],
        journal: Journal,
        *,
        every: float = EVERY_SECONDS,
        limit: float = LIMIT_SECONDS,
    ) -> None:
        """catalog: asked on first use. recent: the pair over the sliding window, None if none.

        every: shortest time between two questions [s]. limit: longest time to an answer [s].
        """
        self._catalog = catalog
        self._recent = recent
        self._journal = journal
        self._every = every
        self._limit = limit
        self._lock = threading.Lock()
        self._asked: dict[str, _Asked] = {}
        self._loading: list[Measuring] = []
        self._closed = False

    def views(self) -> tuple[MetricView, ...]:
        """What each last said, in the order in which they were chosen; cheap."""
        with self._lock:
            return tuple(asked.view for asked in self._asked.values())

    def add(self, plugin: str, params: Mapping[str, Any] | None = None) -> str:
        """Measure with `plugin` from now on; returns the key that names it.

        Waits until it is loaded. Raises PluginError or ParamsError if it cannot be,
        or is measured already with these parameters.
        """
        measuring = Measuring(self._catalog(), plugin, params or {})
        with self._lock:
            self._loading.append(measuring)
        try:
            return self._begin(measuring, measuring.ready())
        except BaseException:
            measuring.drop()
            raise
        finally:
            with self._lock:
                self._loading.remove(measuring)

    def remove(self, key: str) -> None:
        """Measure it no longer. Raises PluginError for an unknown key."""
        with self._lock:
            asked = self._asked.pop(key, None)
            known = ", ".join(self._asked) or "none"
        if asked is None:
            raise PluginError(f"there is no metric '{key}' to remove", hint=f"chosen: {known}")
        asked.end()

    def close(self) -> None:
        """End all processes and wait for the threads; nothing can be added any more."""
        with self._lock:
            self._closed = True
            every, self._asked = list(self._asked.values()), {}
            loading = list(self._loading)
        for measuring in loading:
            measuring.close()
        for asked in every:
            asked.end()

    def _begin(self, measuring: Measuring, loaded: Measured) -> str:
        with self._lock:
            if self._closed:
                raise PluginError("the session is being closed", where=loaded.plugin)
            self._refuse(loaded)
            key, k = loaded.plugin, 2
            while key in self._asked:
                key, k = f"{loaded.plugin}#{k}", k + 1
            asked = _Asked(key, measuring, loaded, self._recent, self._journal)
            self._asked[key] = asked
            asked.start(every=self._every, limit=self._limit)
        return key

    def _refuse(self, loaded: Measured) -> None:
        """Raise PluginError for one too many; one that failed makes room for its retry."""
        for key, asked in list(self._asked.items()):
            same = (asked.view.measured.plugin, asked.view.measured.params)
            if same != (loaded.plugin, loaded.params):
                continue
            if asked.view.state != "failed":
                raise PluginError(f"is measured already, as '{key}'", where=loaded.plugin)
            del self._asked[key]
        if len(self._asked) >= MOST:
            raise PluginError(
                f"{MOST} metrics are measured already", hint="remove one with metric.remove"
            )


class _Asked:
    """One metric, its thread, and what it last said."""

    def __init__(
        self,
        key: str,
        measuring: Measuring,
        loaded: Measured,
        recent: Callable[[], Pair | None],
        journal: Journal,
    ) -> None:
        self.view = MetricView(key, loaded.title, "waiting", loaded)
        self._measuring = measuring
        self._recent = recent
        self._journal = journal
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, *, every: float, limit: float) -> None:
        self._thread = threading.Thread(
            target=self._work, args=(every, limit), name=f"metric-{self.view.key}", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """End process and thread, also in the middle of a question."""
        self._stop.set()
        self._measuring.close()
        if self._thread is not None:
            self._thread.join()

    def _work(self, every: float, limit: float) -> None:
        rest = 0.0
        try:
            while not self._stop.wait(rest):
                rest = self._turn(every, limit)
                if self.view.state == "failed":
                    return
        except Exception as error:  # noqa: BLE001 - the others go on
            said = structs.replace(
                self.view.measured, results=(), error=f"a fault of Twinstudio: {error!r}"
            )
            self._fail(said)
        finally:
            self._measuring.drop()

    def _turn(self, every: float, limit: float) -> float:
        """Ask once, if there is something to measure; how long to wait then [s]."""
        began = time.monotonic()
        try:
            self._measuring.check()
        except PluginError as error:
            self._fail(structs.replace(self.view.measured, results=(), error=error.what))
            return 0.0
        pair = self._recent()
        gathered = time.monotonic() - began
        if pair is not None:
            said = self._measuring.measure(pair, limit=limit)
            if self._stop.is_set():
                return 0.0
            if said.error:
                self._fail(said)
            else:
                start, end = int(pair.stamps[0]), int(pair.stamps[-1])
                self.view = replace(
                    self.view, state="measuring", measured=said, start=start, end=end
                )
        spent = time.monotonic() - began
        return max(every - spent, _SHARE * gathered, 0.0)

    def _fail(self, said: Measured) -> None:
        """Take it out, tell why, and let it say no more."""
        self.view = replace(self.view, state="failed", measured=said)
        text = f"metric {said.name} failed and is measured no more: {said.error}"
        self._journal.write("alarm", "metric", text)
