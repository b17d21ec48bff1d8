from twinstudio.gui.timeline import Timeline

SECOND = 10**9


def held() -> Timeline:
    timeline = Timeline()
    timeline.advance(100 * SECOND, 40 * SECOND)
    return timeline


def test_that_live_follows_now_and_pause_does_not() -> None:
    timeline = held()
    timeline.pause()
    timeline.advance(103 * SECOND, 43 * SECOND)
    assert (timeline.end, timeline.age) == (100 * SECOND, 3.0)
    timeline.resume()
    assert (timeline.live, timeline.end) == (True, 103 * SECOND)


def test_that_scrubbing_stays_within_history() -> None:
    timeline = held()
    timeline.look_back(1000.0)
    assert timeline.end == 40 * SECOND
    timeline.look_back(-5.0)
    assert timeline.end == 100 * SECOND


def test_that_a_held_instant_moves_up_when_history_forgets_it() -> None:
    timeline = held()
    moves: list[float] = []
    timeline.moved.connect(moves.append)
    timeline.look_back(60.0)
    timeline.advance(110 * SECOND, 50 * SECOND)
    assert timeline.end == 50 * SECOND
    assert moves == [-60.0, 10.0]


def test_that_a_window_cannot_vanish() -> None:
    timeline = held()
    timeline.set_window(0.0)
    assert timeline.window == 0.05
