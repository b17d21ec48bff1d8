"""The memory that a job may use."""

import os
import re

import pytest

from twinstudio.jobs.memory import in_words, parsed, used
from twinstudio.jobs.reproduce import again
from twinstudio.model.errors import JobError


@pytest.mark.parametrize("name", ["Grows", "GrowsInChildren"])
def test_that_a_job_that_uses_too_much_memory_fails_and_says_so(run, store, name):
    view = run(name, memory=200_000_000)
    assert view.state == "failed"
    assert re.search(r"it used .* of memory, more than its limit of 200 MB, and", view.error)
    assert store.load(view.id).error == view.error


def test_that_shared_memory_counts_once(run):
    # Five processes that share 120 MiB are far below five times that.
    view = run("Shares", memory=400_000_000)
    assert view.state == "done", view.error


def test_that_a_job_within_its_memory_is_done_and_keeps_its_limit(run, store):
    view = run("Dice", memory=2_000_000_000)
    assert view.state == "done", view.error
    spec = store.load(view.id).spec
    assert again(store.load(view.id), store.path(view.id)).memory == spec.memory == 2_000_000_000


def test_that_a_limit_below_nothing_is_refused(spec):
    with pytest.raises(JobError, match="memory is -1"):
        spec("Dice", memory=-1)


def test_that_the_memory_of_a_group_is_seen():
    assert used(os.getpgid(0)) > 10_000_000
    assert used(2**22 + 1) == 0  # there is no such group


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("12", 12), ("500M", 500_000_000), ("2 GB", 2_000_000_000), ("1.5k", 1500)],
)
def test_that_a_size_is_read_as_people_write_it(text, size):
    assert parsed(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1", "2T2", "nan", "inf"])
def test_that_what_is_no_size_is_refused(text):
    with pytest.raises((ValueError, OverflowError)):
        parsed(text)


def test_that_sizes_are_told_as_people_say_them():
    assert (in_words(2_100_000_000), in_words(350_000_000)) == ("2.1 GB", "350 MB")
