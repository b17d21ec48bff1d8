"""Telemetry waits for its layout, within bounds, and what is given up is counted."""

import msgpack
import numpy as np
import pytest
from wire_helpers import LAYOUT, WIDER

from twinstudio.flow import intake as module
from twinstudio.flow.clock import ClockModel
from twinstudio.flow.intake import Intake
from twinstudio.flow.meter import Meter
from twinstudio.flow.protocol import Description
from twinstudio.model.block import Block

SECOND = 1_000_000_000


def description(instance="one", revision=1, layout=LAYOUT, rate=100.0):
    return Description(
        protocol=1,
        instance=instance,
        role="cell",
        name="arm",
        software="",
        telemetry=1,
        revision=revision,
        layout=layout,
        rate=rate,
    )


def message(first, n=1, *, instance="one", layout=1, width=2):
    header = {
        "v": 1,
        "instance": instance,
        "layout": layout,
        "first": first,
        "n": n,
        "width": width,
    }
    stamps = np.arange(first, first + n, dtype="<i8")
    return [b"telemetry", msgpack.packb(header), stamps.tobytes(), bytes(8 * n * width)]


@pytest.fixture
def meter():
    return Meter("tcp://h:1", 0)


@pytest.fixture
def log():
    return []


@pytest.fixture
def intake(meter, log):
    def adopted(new):
        meter.described(new, 0)
        log.append((new.instance, new.revision))

    return Intake(meter, adopted=adopted, deliver=lambda block: log.append(block.first))


def test_that_blocks_wait_for_a_description_and_follow_it(intake, log):
    intake.telemetry(message(0), received=10)
    assert intake.asking
    intake.describe(description(), asked=5)
    intake.telemetry(message(1), received=20)
    assert log == [("one", 1), 0, 1]
    assert not intake.asking


def test_that_a_later_instance_is_kept_until_it_is_told_of(intake, meter, log):
    intake.describe(description(), asked=0)
    intake.telemetry(message(0, instance="two"), received=10)
    intake.describe(description(), asked=5)  # answered before the restart
    assert intake.asking
    intake.describe(description("two"), asked=15)
    assert log == [("one", 1), ("two", 1), 0]
    assert meter.health(None, 0).lost == 0


def test_that_an_instance_nobody_owns_up_to_is_counted_as_lost(intake, meter):
    intake.describe(description(), asked=0)
    intake.telemetry(message(0, 3, instance="ghost"), received=10)
    intake.describe(description(), asked=11)
    assert not intake.asking
    assert meter.health(None, 0).lost == 3


def test_that_kept_blocks_are_bounded_and_the_rest_is_lost(intake, meter, log, monkeypatch):
    monkeypatch.setattr(module, "HELD_BYTES", 5000)
    for k in range(100):
        intake.telemetry(message(k, instance="two"), received=k)
    intake.describe(description("two"), asked=0)
    kept = log[1:]
    assert 0 < len(kept) < 10
    assert kept == list(range(100 - len(kept), 100))
    assert meter.health(None, 0).lost == 100 - len(kept)


def test_that_a_new_layout_takes_effect_with_its_first_block(intake, meter, log):
    intake.describe(description(), asked=0)
    intake.describe(description(revision=2, layout=WIDER), asked=1)
    intake.telemetry(message(0), received=2)
    intake.telemetry(message(1, layout=2, width=4), received=3)
    intake.telemetry(message(2, layout=1), received=4)
    intake.telemetry(message(3, layout=2, width=4), received=5)
    assert log == [("one", 1), 0, ("one", 2), 1, 3]
    health = meter.health(None, 0)
    assert (health.relayouts, health.lost) == (1, 1)


def test_that_a_new_layout_takes_effect_without_blocks_when_it_is_told_twice(intake, log):
    intake.describe(description(), asked=0)
    for asked in (1, 2):
        intake.describe(description(revision=2, layout=WIDER), asked=asked)
    assert log == [("one", 1), ("one", 2)]


def block(first, stamps, received):
    stamps = np.asarray(stamps, dtype=np.int64)
    return Block(LAYOUT, stamps, np.zeros((len(stamps), 2)), first, received)


def test_that_rate_and_latency_are_those_of_the_stream(meter):
    meter.described(description(rate=1000.0), 0)
    ahead = 5 * SECOND
    for k in range(1, 301):
        now = k * SECOND // 100
        stamps = now + ahead - 3_000_000 - 1_000_000 * np.arange(10)[::-1]
        meter.block(block(10 * k, stamps, now), now)
    health = meter.health(ClockModel(0, ahead, margin=1e-4), 3 * SECOND)
    assert health.rate == pytest.approx(1000.0)
    assert health.latency_p50 == pytest.approx(3e-3)
    assert health.latency_p99 == pytest.approx(3e-3)
    assert (health.offset, health.offset_bound) == (5.0, 1e-4)
    assert (health.state, health.age) == ("streaming", 0.0)


def test_that_rate_falls_to_nothing_in_silence(meter):
    meter.described(description(), 0)
    for k in range(100):
        meter.block(block(k, [k], k * SECOND // 100), k * SECOND // 100)
    health = meter.health(None, 60 * SECOND)
    assert (health.rate, health.state) == (0.0, "silent")
    assert health.text.startswith("silent for 59.0 s: no samples; nobody answers at tcp://h:1")
    assert health.age == pytest.approx(59.01)


@pytest.mark.parametrize(
    ("rate", "patience"), [(1000.0, 0.5), (1.0, 5.0), (0.0, 5.0), (1e-320, 3600.0)]
)
def test_that_patience_is_five_periods_and_half_a_second_at_least(meter, rate, patience):
    meter.described(description(rate=rate), 0)
    meter.block(block(0, [0], 0), 0)
    assert meter.health(None, round((patience - 0.01) * SECOND)).state == "streaming"
    assert meter.health(None, round((patience + 0.01) * SECOND)).state == "silent"


def test_that_a_source_without_samples_is_waited_for_and_then_silent(meter):
    meter.described(description(), SECOND)
    assert meter.health(None, SECOND + 1).state == "connecting"
    health = meter.health(None, 11 * SECOND)
    assert health.state == "silent"
    assert "arm has sent no samples for 10.0 s" in health.text
