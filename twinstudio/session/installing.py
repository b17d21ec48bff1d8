"""Plugins in and out while a session runs: planned, agreed to, carried out, one at a time.

Everything slow happens on a thread of its own and in pip's process; a face draws
`view` and leaves wishes.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from twinstudio.model.errors import PluginError, TwinstudioError
from twinstudio.model.words import one_line
from twinstudio.plugin import install as installer
from twinstudio.plugin.catalog import FIRST_PARTY, Catalog, Entry
from twinstudio.plugin.install import PlannedChange
from twinstudio.plugin.manifest import normal_name
from twinstudio.session.journal import Journal

Verb = Literal["install", "uninstall"]
State = Literal["planning", "planned", "working", "done", "failed", "cancelled"]
KEPT = 1000
"""Lines of pip's output that are kept; of more, the newest."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done. what: a wheel, folder or package. offline: ask no package index."""

    verb: Verb
    what: str
    offline: bool = False


class InstallView(msgspec.Struct, frozen=True, kw_only=True):
    """One installation or removal as it stands.

    number: a new one for each. state: *planned* waits for agreement.
    changes: known once it is planned. lines: the newest of pip's output, `KEPT` at
    most; count: how many there were. outcome: how it ended, one line; "" before.
    """

    number: int
    wanted: Wanted
    state: State = "planning"
    changes: tuple[PlannedChange, ...] = ()
    lines: tuple[str, ...] = ()
    count: int = 0
    cancelling: bool = False
    outcome: str = ""

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in ("done", "failed", "cancelled")


class Installing:
    """One installation at a time, and what became of the last one. Close it when done."""

    def __init__(self, catalog: Callable[[], Catalog], journal: Journal) -> None:
        """catalog: what is to know of every change."""
        self._catalog = catalog
        self._journal = journal
        self._lock = threading.Lock()
        self._newest: _Operation | None = None
        self._closed = False

    def view(self) -> InstallView | None:
        """The newest one as it stands, None before the first."""
        newest = self._newest
        return None if newest is None else newest.view()

    def install(self, what: str, *, agreed: bool = False, offline: bool = False) -> None:
        """Plan to install `what`, and do it once that is agreed to; returns at once.

        Raises PluginError while something else is being done.
        """
        self._wish(Wanted(verb="install", what=what.strip(), offline=offline), agreed=agreed)

    def uninstall(self, package: str, *, agreed: bool = False) -> None:
        """Plan to uninstall `package`, and do it once that is agreed to; returns at once.

        Raises PluginError for what comes with Twinstudio, and as `install` does.
        """
        package = package.strip()
        if normal_name(package) in FIRST_PARTY:
            raise PluginError(
                f"package '{package}' comes with Twinstudio", hint="disable its plugins instead"
            )
        self._wish(Wanted(verb="uninstall", what=package), agreed=agreed)

    def cancel(self) -> None:
        """Drop the plan, or end what is under way; files being changed are finished first."""
        newest = self._newest
        if newest is None or not newest.cancel():
            raise PluginError("nothing is being installed or uninstalled")

    def close(self) -> None:
        """Cancel what is under way, and wait until nothing is left of it."""
        with self._lock:
            self._closed = True
        if self._newest is not None:
            self._newest.cancel()
            self._newest.join()

    def _wish(self, wanted: Wanted, *, agreed: bool) -> None:
        with self._lock:
            newest = self._newest
            if self._closed:
                raise PluginError(f"cannot {wanted.verb} '{wanted.what}': the session is closed")
            if newest is not None and agreed and newest.agree(wanted):
                return
            if newest is not None and newest.busy:
                raise PluginError(
                    f"cannot {wanted.verb} '{wanted.what}': '{newest.wanted.what}' is not done",
                    hint="wait for it, or cancel it (plugin.cancel)",
                )
            if newest is not None:
                newest.cancel()  # a plan that nobody agreed to
            number = newest.number + 1 if newest is not None else 1
            self._newest = _Operation(number, wanted, self._catalog, self._journal, agreed=agreed)


class _Operation:
    """One installation or removal; its work is done on threads of its own."""

    def __init__(
        self,
        number: int,
        wanted: Wanted,
        catalog: Callable[[], Catalog],
        journal: Journal,
        *,
        agreed: bool,
    ) -> None:
        self.number = number
        self.wanted = wanted
        self._catalog = catalog
        self._journal = journal
        self._agreed = agreed
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._view = InstallView(number=number, wanted=wanted)
        self._threads: list[threading.Thread] = []
        self._begin(self._plan)

    def view(self) -> InstallView:
        """How it stands."""
        with self._lock:
            return msgspec.structs.replace(self._view, lines=tuple(self._lines))

    @property
    def busy(self) -> bool:
        """Whether something is being done; a plan alone may be dropped."""
        return self._view.state in ("planning", "working")

    def agree(self, wanted: Wanted) -> bool:
        """Agree to it, if it is `wanted` and has not been done; whether it is."""
        with self._lock:
            if wanted != self.wanted or self._view.over or self._stop.is_set():
                return False
            self._agreed = True
            if self._view.state == "planned":
                self._change(state="working")
                self._begin(self._carry_out)
            return True

    def cancel(self) -> bool:
        """Have it end soon; False if it is over."""
        with self._lock:
            if self._view.over:
                return False
            self._stop.set()
            self._change(cancelling=True)
            if self._view.state == "planned":
                self._end("cancelled", "Cancelled; nothing was changed")
            return True

    def join(self) -> None:
        """Wait until its threads have ended."""
        for thread in self._threads:
            thread.join()

    def _begin(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(
            target=self._guarded, args=(work,), name="installing", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _change(self, **news: Any) -> None:
        with self._lock:
            self._view = msgspec.structs.replace(self._view, **news)

    def _say(self, line: str) -> None:
        with self._lock:
            self._lines.append(one_line(line))
            self._change(count=self._view.count + 1)

    def _end(self, state: State, outcome: str) -> None:
        outcome = one_line(outcome)
        self._journal.write("alarm" if state == "failed" else "info", "plugin", outcome)
        self._change(state=state, outcome=outcome)

    # What follows runs on a thread of the operation.

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except installer.Stopped:
            self._end("cancelled", f"Cancelled; {self._left_behind()}")
        except TwinstudioError as error:
            self._end("failed", f"{error}; {self._left_behind()}")
        except Exception as error:  # noqa: BLE001 - a face must be told, whatever it was
            self._end("failed", f"a fault of Twinstudio: {error!r}; {self._left_behind()}")

    def _plan(self) -> None:
        changes = self._planned()
        with self._lock:
            if not changes or self._stop.is_set():
                self._end(*_nothing(self.wanted, stopped=self._stop.is_set()))
                return
            self._change(changes=changes, state="working" if self._agreed else "planned")
            go_on = self._agreed
        if go_on:
            self._carry_out()
        else:
            text = "; ".join(map(str, changes))
            self._journal.write("info", "plugin", f"plan: {text}; waits to be agreed to")

    def _planned(self) -> tuple[PlannedChange, ...]:
        what = self.wanted.what
        if self.wanted.verb == "uninstall":
            return (installer.plan_removal(what),)
        return installer.plan(what, self._say, offline=self.wanted.offline, stop=self._stop)

    def _carry_out(self) -> None:
        wanted = self.wanted
        if wanted.verb == "uninstall":
            installer.uninstall(wanted.what, self._say, stop=self._stop)
        else:
            installer.install(wanted.what, self._say, offline=wanted.offline, stop=self._stop)
        self._end("done", self._done())

    def _done(self) -> str:
        """What was done, as it is found afterwards, and which plugins came with it."""
        names, entries = self._names(), self._refreshed()
        if self.wanted.verb == "uninstall":
            return "; ".join(f"{c.name} {c.before} is uninstalled" for c in self._view.changes)
        done = ", ".join(f"{c.name} {installer.version_of(c.name)}" for c in self._view.changes)
        found = [entry for entry in entries if normal_name(entry.origin) in names]
        plugins = ", ".join(entry.id for entry in found) or "no plugins in it"
        known = {normal_name(entry.origin) for entry in found}
        libraries = [c for c in self._view.changes if c.before and normal_name(c.name) not in known]
        stale = libraries or any(entry.restart for entry in found)  # libraries may be in use here
        return f"Installed {done} ({plugins})" + ("; restart Twinstudio" if stale else "")

    def _left_behind(self) -> str:
        """What a run that did not come to its end has changed."""
        if self._view.state != "working":
            return "nothing was changed"
        self._refreshed()
        unsure = [c.name for c in self._view.changes if c.version == c.before]
        now = {c.name: installer.version_of(c.name) for c in self._view.changes}
        changed = [c.name for c in self._view.changes if now[c.name] != c.before]
        words = [f"{name} is {now[name] or 'gone'} now" for name in changed]
        words += [f"{name} may be incomplete" for name in unsure if name not in changed]
        return ", ".join(words) or "nothing was changed"

    def _refreshed(self) -> tuple[Entry, ...]:
        try:
            return self._catalog().refresh(self._names())
        except TwinstudioError as error:  # what pip did is done all the same
            self._journal.write("alarm", "plugin", str(error))
            return ()

    def _names(self) -> set[str]:
        return {normal_name(change.name) for change in self._view.changes}


def _nothing(wanted: Wanted, *, stopped: bool) -> tuple[State, str]:
    if stopped:
        return "cancelled", "Cancelled; nothing was changed"
    return "done", f"'{wanted.what}' is installed already; nothing was changed"
