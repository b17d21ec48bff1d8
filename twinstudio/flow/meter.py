"""What is counted on a link, and how its state is put into words."""

import math
import threading
from dataclasses import dataclass

import numpy as np

from twinstudio.flow.clock import ClockModel
from twinstudio.flow.protocol import VERSION, Description
from twinstudio.model.block import Block, Stamps
from twinstudio.model.health import Health, LinkState

_SECOND = 1_000_000_000
_RING = 2048
_FRESH = _SECOND // 10  # figures of health() are computed anew at most this often
_LATELY = 10 * _SECOND  # what the figures speak of, if the ring holds that much
_FOREIGN = 3 * _SECOND  # how long another version on the wire is remembered


@dataclass(slots=True)
class _Counts:
    received: int = 0
    lost: int = 0
    repeated: int = 0
    reversed: int = 0
    astray: int = 0
    missing: int = 0
    garbage: int = 0
    foreign: int = 0
    restarts: int = 0
    relayouts: int = 0
    events_lost: int = 0


@dataclass(frozen=True, slots=True)
class _Figures:
    rate: float = 0.0
    p50: float = math.nan
    p99: float = math.nan


class Meter:
    """Counts of one link; filled by its thread, read by any. All times local ns."""

    def __init__(self, address: str, now: int) -> None:
        self._address = address
        self._opened = now
        self._lock = threading.Lock()
        self._counts = _Counts()
        self._arrived = np.zeros(_RING, dtype=np.int64)
        self._stamped = np.zeros(_RING, dtype=np.int64)
        self._samples = np.zeros(_RING, dtype=np.int64)
        self._blocks = 0
        self._old = 0
        self._expected: int | None = None
        self._last_stamp: int | None = None
        self._last_block: int | None = None
        self._answered: int | None = None
        self._description: Description | None = None
        self._described = now
        self._foreign: tuple[int | None, int] | None = None
        self._complaint = ""
        self._garbage: tuple[str, int] | None = None
        self._strayed: int | None = None
        self._fault = ""
        self._closed = False
        self._figures = (0, _Figures())

    def block(self, block: Block, received: int) -> None:
        """Count a block that is handed on."""
        n = len(block)
        stamps, values = block.stamps, block.values
        missing = int(np.count_nonzero(values != values))  # noqa: PLR0124 - true for NaN alone
        first, last = int(stamps[0]), int(stamps[-1])
        repeated = backward = 0
        if n > 1:
            later = stamps[1:] > stamps[:-1]
            if not later.all():
                repeated = int(np.count_nonzero(stamps[1:] == stamps[:-1]))
                backward = int(np.count_nonzero(~later)) - repeated
        with self._lock:
            counts = self._counts
            if self._last_stamp is not None and first <= self._last_stamp:
                repeated += first == self._last_stamp
                backward += first < self._last_stamp
            if self._expected is not None and block.first > self._expected:
                counts.lost += block.first - self._expected
            self._expected = block.first + n
            self._last_stamp = last
            self._last_block = received
            self._complaint = ""
            self._foreign = None
            counts.received += n
            counts.missing += missing
            counts.repeated += repeated
            counts.reversed += backward
            slot = self._blocks % _RING
            self._arrived[slot], self._stamped[slot], self._samples[slot] = received, last, n
            self._blocks += 1

    def lost(self, samples: int) -> None:
        """Count samples that arrived but could not be understood any more."""
        with self._lock:
            self._counts.lost += samples

    def restamped(self) -> None:
        """Forget how late samples were: their source's clock was set."""
        with self._lock:
            self._old = self._blocks

    def astray(self, samples: int, received: int) -> None:
        """Count samples whose stamps do not fit the source's clock."""
        with self._lock:
            self._counts.astray += samples
            self._strayed = received

    def garbage(self, why: str, now: int) -> None:
        """Count a message that is none."""
        with self._lock:
            self._counts.garbage += 1
            self._garbage = (why, now)

    def foreign(self, version: int | None, now: int) -> None:
        """Count a message of another protocol version."""
        with self._lock:
            self._counts.foreign += 1
            self._foreign = (version, now)

    def events_lost(self, total: int) -> None:
        """Count events that can not be had any more."""
        with self._lock:
            self._counts.events_lost += total

    def complain(self, text: str) -> None:
        """Say why the endpoint's answers are of no use; until a good one comes."""
        with self._lock:
            self._complaint = text

    def understood(self) -> None:
        """Note that the endpoint gave a good description."""
        with self._lock:
            self._complaint = ""

    def fail(self, text: str) -> None:
        """Say that the link itself, or one of its listeners, is broken."""
        with self._lock:
            self._fault = text

    def close(self) -> None:
        """From now on the state is closed."""
        with self._lock:
            self._closed = True

    def answer(self, now: int) -> None:
        """Note that the endpoint answered."""
        with self._lock:
            self._answered = now

    def described(self, description: Description, now: int) -> None:
        """Take in a good description; counts restarts and new layouts."""
        with self._lock:
            self._described = now
            old, self._description = self._description, description
            self._complaint = ""
            if old is None:
                return
            if old.instance != description.instance:
                self._counts.restarts += 1
                self._expected = self._last_stamp = None
                self._old = self._blocks
            elif old.revision != description.revision:
                self._counts.relayouts += 1

    def health(self, clock: ClockModel | None, now: int) -> Health:
        """Everything at local time `now`."""
        with self._lock:
            state, text = self._state(now)
            computed, figures = self._figures
            if now - computed > _FRESH:
                figures = self._figure(clock, now)
                self._figures = (now, figures)
            counts = self._counts
            age = math.inf if self._last_block is None else (now - self._last_block) / _SECOND
            return Health(
                state=state,
                text=f"{text}; {self._fault}" if self._fault else text,
                rate=figures.rate,
                latency_p50=figures.p50,
                latency_p99=figures.p99,
                offset=math.nan if clock is None else clock.offset,
                offset_bound=math.inf if clock is None else clock.bound,
                age=age,
                received=counts.received,
                lost=counts.lost,
                repeated=counts.repeated,
                reversed=counts.reversed,
                astray=counts.astray,
                missing=counts.missing,
                garbage=counts.garbage,
                foreign=counts.foreign,
                restarts=counts.restarts,
                relayouts=counts.relayouts,
                events_lost=counts.events_lost,
            )

    def _figure(self, clock: ClockModel | None, now: int) -> _Figures:
        size = min(self._blocks - self._old, _RING)
        slots = np.arange(self._blocks - size, self._blocks) % _RING
        arrived = self._arrived[slots]
        slots = slots[arrived > now - _LATELY]
        arrived, size = self._arrived[slots], len(slots)
        if clock is None or size == 0:
            p50 = p99 = math.nan
        else:
            late = (arrived - clock.to_local(self._stamped[slots])) / _SECOND
            p50, p99 = (float(each) for each in np.percentile(late, (50, 99)))
        return _Figures(self._rate(arrived, self._samples[slots], now), p50, p99)

    def _rate(self, arrived: Stamps, samples: Stamps, now: int) -> float:
        span = max(_SECOND, self._patience())
        recent = int(np.searchsorted(arrived, now - span))
        if len(arrived) - recent < 2:
            return 0.0
        # Blocks end when they arrive: the first of the span began before it.
        elapsed = int(arrived[-1] - arrived[recent])
        return float(samples[recent + 1 :].sum()) * _SECOND / max(elapsed, 1)

    def _patience(self) -> int:
        """How long without samples is still in order [ns]."""
        rate = self._description.rate if self._description else 0.0
        seconds = min(5.0 / rate, 3600.0) if rate > 0 else 5.0
        return round(max(0.5, seconds) * _SECOND)

    def _state(self, now: int) -> tuple[LinkState, str]:
        if self._closed:
            return "closed", "closed"
        where = self._address
        if self._foreign is not None and now - self._foreign[1] < _FOREIGN:
            version = self._foreign[0]
            spoken = "another protocol" if version is None else f"protocol {version}"
            advice = f"this Twinstudio speaks {VERSION}: update one of them"
            return "incompatible", f"{where} speaks {spoken}, {advice}"
        if self._complaint:
            return "connecting", f"{where} answers, but {self._complaint}"
        if self._description is None:
            wait = (now - self._opened) / _SECOND
            advice = "is it running, and is the address right?"
            return (
                "connecting",
                f"connecting to {where} for {wait:.0f} s: nobody answers yet; {advice}",
            )
        return self._flow(self._description, now)

    def _flow(self, description: Description, now: int) -> tuple[LinkState, str]:
        since = self._last_block
        if since is not None and now - since <= self._patience():
            return "streaming", f"{description.name} is streaming{self._doubts(now)}"
        if self._garbage is not None and now - self._garbage[1] < _LATELY:
            why = f"{description.name} sends messages that cannot be read: {self._garbage[0]}"
            return "silent", f"{why}; do they follow its layout and the protocol?"
        answers = self._answered is not None and now - self._answered < 3 * _SECOND
        who = "robot's bridge" if description.role == "cell" else "twin"
        advice = (
            f"it still answers; is the {who} publishing?"
            if answers
            else f"nobody answers at {self._address}; is the {who} still running?"
        )
        if since is None:
            waited = (now - self._described) / _SECOND
            if now - self._described <= self._patience():
                return "connecting", f"{description.name} answers; waiting for its first sample"
            return "silent", f"{description.name} has sent no samples for {waited:.1f} s: {advice}"
        return "silent", f"silent for {(now - since) / _SECOND:.1f} s: no samples; {advice}"

    def _doubts(self, now: int) -> str:
        """What is odd about samples that do come in."""
        if self._strayed is None or now - self._strayed > _LATELY:
            return ""
        return (
            ", but stamps that its clock cannot have shown;"
            " are samples and pings stamped by one clock?"
        )
