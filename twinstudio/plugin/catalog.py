"""The catalog: every plugin there is, its state, and its class on first use.

Listing reads manifests and imports nothing. A plugin that fails keeps its reason
and traceback in its entry, and nothing else is affected.
"""

import contextlib
import difflib
import importlib
import threading
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from twinstudio.model.errors import PluginError
from twinstudio.model.words import of_error, one_line, trace_of
from twinstudio.plugin import loading
from twinstudio.plugin.choices import Choices
from twinstudio.plugin.folders import Folder
from twinstudio.plugin.kinds import Plugin
from twinstudio.plugin.manifest import Installed, Offer, Source, normal_name
from twinstudio.plugin.probing import LONGEST, probe

FIRST_PARTY = frozenset({"twinstudio-calibration", "twinstudio-metrics"})
"""Distributions that come with Twinstudio; all that safe mode leaves."""

State = Literal["enabled", "disabled", "failed", "unused"]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one plugin without running it.

    kind: "" where the manifest cannot be read.
    origin: distribution's name, or path of the single file.
    state: *unused* until it was imported, then *enabled* (it fits) or *failed*;
        *disabled* by the user or by safe mode.
    reason: why it is disabled or failed, one line. trace: traceback of the failure, or "".
    restart: why this process must be started anew to use it, one line, or "".
    """

    id: str
    kind: str
    title: str
    help: str
    docs: str
    origin: str
    version: str
    first_party: bool
    state: State
    reason: str = ""
    trace: str = ""
    restart: str = ""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where a catalog looks, as plain data that can be handed to a child process.

    folders: of single-file plugins. settings: folder that keeps what is switched
    off, "" to keep nothing. installed: whether distributions count.
    """

    folders: tuple[str, ...] = ()
    settings: str = ""
    safe: bool = False
    installed: bool = True


@dataclass(frozen=True, slots=True)
class _Outcome:
    cls: type[Plugin[Any]] | None = None
    reason: str = ""
    trace: str = ""
    hint: str = ""


def open_catalog(places: Places) -> "Catalog":
    """The catalog of `places`; raises PluginError where its settings cannot be read."""
    sources: list[Source] = [Installed()] if places.installed else []
    sources += [Folder(Path(folder)) for folder in places.folders]
    choices = Choices(Path(places.settings) if places.settings else None)
    return Catalog(sources, choices, safe=places.safe)


class Catalog:
    """All plugins of `sources`, read when first asked for. Safe to use from several threads."""

    def __init__(self, sources: Sequence[Source], choices: Choices, *, safe: bool = False) -> None:
        self._sources = tuple(sources)
        self._choices = choices
        self.safe = safe
        self._lock = threading.RLock()
        self._importing = threading.RLock()  # taken first where both are needed
        self._offers: tuple[Offer, ...] | None = None
        self._outcomes: dict[Offer, _Outcome] = {}
        self._ran: dict[Offer, _Outcome] = {}  # failures of runs; the class may well be sound
        self._replaced: dict[str, str] = {}  # distribution -> version that was imported here

    def entries(self) -> tuple[Entry, ...]:
        """Every plugin, first-party first, then by id; imports nothing."""
        with self._lock:
            found = [self._entry(offer) for offer in self._known()]
        return tuple(sorted(found, key=lambda entry: (not entry.first_party, entry.id)))

    def entry(self, plugin: str) -> Entry:
        """The entry of one id; raises PluginError for an unknown one, naming the nearest."""
        with self._lock:
            return self._entry(self._offer(plugin))

    def load(self, plugin: str) -> type[Plugin[Any]]:
        """The class of `plugin`, imported on first use.

        Raises PluginError if it is unknown, disabled or does not fit; a failure
        stays until `retry`.
        """
        offer = self._usable(plugin)
        with self._importing:  # not under the other lock: a slow import holds up no listing
            outcome = self._outcomes.get(offer) or self._tried(offer)
        if outcome.cls is None:
            raise PluginError(outcome.reason, where=f"plugin '{plugin}'", hint=outcome.hint)
        return outcome.cls

    def offer(self, plugin: str) -> Offer:
        """What announces `plugin`, for a process that is to load it; imports nothing.

        Raises PluginError if it is unknown, badly announced or disabled.
        """
        return self._usable(plugin)

    def probe(self, plugin: str, *, timeout: float = LONGEST) -> Entry:
        """Import `plugin` in a child process first, unless it was loaded or has failed already.

        Afterwards `load` refuses what would have taken this process with it. Takes
        about a second, `timeout` at most: keep it off the window's thread.
        """
        with self._lock:
            offer = self._offer(plugin)
            done = offer.problem or self._blocked(offer) or offer in self._outcomes
        fault = None if done else probe(offer, timeout=timeout)
        with self._lock:
            if fault is not None:
                self._outcomes.setdefault(
                    offer,
                    _Outcome(reason=one_line(fault.what), trace=fault.trace, hint=fault.hint),
                )
            return self.entry(plugin)

    def retry(self, plugin: str) -> Entry:
        """Read, probe and import `plugin` anew, with all that came from the same place."""
        with self._importing, self._lock:
            self._drop(self._offer(plugin))
            self.refresh()
        if self.probe(plugin).state == "unused":
            with contextlib.suppress(PluginError):  # the entry holds reason and trace
                self.load(plugin)
        return self.entry(plugin)

    def refresh(self, replaced: Collection[str] = ()) -> tuple[Entry, ...]:
        """Look at the sources anew, e.g. after an installation.

        Keeps what is loaded, but of what has changed nothing: its next use imports it anew.
        replaced: distributions whose files have changed, perhaps under the same version.
        """
        names = {normal_name(name) for name in replaced}
        with self._importing, self._lock:
            before = self._offers or ()
            importlib.invalidate_caches()
            self._offers = None
            known = set(self._known())
            changed = {
                offer.origin: offer
                for offer in (*before, *self._outcomes)
                if offer not in known or (offer.distribution and normal_name(offer.origin) in names)
            }
            for offer in changed.values():
                if offer.distribution and loading.is_imported(offer):
                    self._replaced[offer.origin] = offer.version
                self._drop(offer)
            return self.entries()

    def enable(self, plugin: str) -> Entry:
        """Switch `plugin` on and remember it."""
        return self._switch(plugin, enabled=True)

    def disable(self, plugin: str) -> Entry:
        """Switch `plugin` off and remember it."""
        return self._switch(plugin, enabled=False)

    def note_failure(self, plugin: str, error: BaseException | str, trace: str = "") -> None:
        """Keep that `plugin` failed when it ran; it can still be loaded and run again."""
        with self._lock:
            offer = self._offer(plugin)
            if isinstance(error, BaseException):
                trace = trace or trace_of(error)
                error = of_error(error)
            self._ran[offer] = _Outcome(reason=one_line(error), trace=trace)

    def note_success(self, plugin: str) -> None:
        """Forget that an earlier run failed: the newest one has not."""
        with self._lock:
            self._ran.pop(self._offer(plugin), None)

    def digest(self, plugin: str) -> str:
        """Content hash of the plugin's source (sha256, hex), for the record of a run."""
        with self._lock:
            return loading.digest(self._offer(plugin))

    def stray_hooks(self, plugin: str) -> list[str]:
        """What is marked as a hook beside the plugin but is none, a line each; loads it."""
        self.load(plugin)
        return loading.unknown_hooks(self._usable(plugin))

    def _switch(self, plugin: str, *, enabled: bool) -> Entry:
        with self._lock:
            offer = self._offer(plugin)
            self._choices.switch(plugin, enabled=enabled)
            return self._entry(offer)

    def _drop(self, offer: Offer) -> None:
        """Forget what is loaded, and what is known, of all that came from one place."""
        loading.forget(offer)
        for kept in (self._outcomes, self._ran):
            for other in [o for o in kept if o.origin == offer.origin]:
                del kept[other]

    def _tried(self, offer: Offer) -> _Outcome:
        try:
            outcome = _Outcome(cls=loading.load_class(offer))
        except PluginError as error:
            outcome = _Outcome(
                reason=one_line(error.what),
                trace=trace_of(error.__cause__ or error),
                hint=error.hint,
            )
        with self._lock:
            self._outcomes[offer] = outcome
        return outcome

    def _usable(self, plugin: str) -> Offer:
        where = f"plugin '{plugin}'"
        with self._lock:
            offer = self._offer(plugin)
            if offer.problem:
                raise PluginError(offer.problem, where=where)
            if blocked := self._blocked(offer):
                raise PluginError(blocked, where=where)
            return offer

    def _entry(self, offer: Offer) -> Entry:
        state, reason, trace = self._state(offer)
        return Entry(
            id=offer.id,
            kind=offer.kind,
            title=offer.title,
            help=offer.help,
            docs=offer.docs,
            origin=offer.origin,
            version=offer.version,
            first_party=_is_first_party(offer),
            state=state,
            reason=reason,
            trace=trace,
            restart=self._restart(offer),
        )

    def _restart(self, offer: Offer) -> str:
        old = self._replaced.get(offer.origin)
        if old is None:
            return ""
        return (
            f"version {old} was in use when it was replaced, and parts of it are still loaded;"
            " restart Twinstudio"
        )

    def _state(self, offer: Offer) -> tuple[State, str, str]:
        if blocked := self._blocked(offer):
            return "disabled", blocked, ""
        if offer.problem:
            return "failed", offer.problem, ""
        outcome = self._outcomes.get(offer, _Outcome())
        if not outcome.reason:
            outcome = self._ran.get(offer, outcome)
        if outcome.reason:
            hint = f"; {outcome.hint}" if outcome.hint else ""
            return "failed", outcome.reason + hint, outcome.trace
        return "enabled" if outcome.cls else "unused", "", ""

    def _blocked(self, offer: Offer) -> str:
        if self.safe and not _is_first_party(offer):
            return "safe mode: only plugins that come with Twinstudio are used"
        if offer.id in self._choices.disabled:
            return f"switched off; 'twinstudio plugins enable {offer.id}' switches it on"
        return ""

    def _offer(self, plugin: str) -> Offer:
        offers = [offer for offer in self._known() if offer.id == plugin]
        if offers:
            return min(offers, key=lambda offer: bool(offer.problem))
        names = [offer.id for offer in self._known()]
        close = difflib.get_close_matches(plugin, names, n=1)
        hint = f"did you mean '{close[0]}'?" if close else "'twinstudio plugins list' shows all"
        raise PluginError(f"there is no plugin '{plugin}'", hint=hint)

    def _known(self) -> tuple[Offer, ...]:
        if self._offers is None:
            offers = [offer for source in self._sources for offer in source.offers()]
            self._offers = _without_rivals(offers)
        return self._offers


def _without_rivals(offers: Sequence[Offer]) -> tuple[Offer, ...]:
    """Of two plugins with one id none is used, but one that comes with Twinstudio keeps its id.

    Taking the first would let the order of folders decide what a result means.
    """
    sound = [offer for offer in offers if not offer.problem]
    shared = {name for name, count in Counter(offer.id for offer in sound).items() if count > 1}
    owned = {offer.id for offer in sound if _is_first_party(offer)}
    judged = []
    for offer in offers:
        if (
            offer.id in shared
            and not offer.problem
            and not (offer.id in owned and _is_first_party(offer))
        ):
            others = [o.origin for o in sound if o.id == offer.id and o is not offer]
            problem = (
                f"id '{offer.id}' is also taken by {', '.join(dict.fromkeys(others))};"
                " uninstall one of them"
            )
            judged.append(replace(offer, problem=problem))
        else:
            judged.append(offer)
    return tuple(judged)


def _is_first_party(offer: Offer) -> bool:
    return offer.distribution and offer.origin in FIRST_PARTY
