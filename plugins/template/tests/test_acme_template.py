"""Tests of Template."""

import pytest
from twinstudio.plugin import api
from twinstudio.plugin.testing import check_plugin, make_pair

from acme_template.plugin import AcmeTemplate, Params


def test_that_the_plugin_keeps_the_rules() -> None:
    """No finding: parameters, methods and results are as they must be."""
    assert check_plugin(AcmeTemplate) == []


def test_that_a_known_gap_is_found() -> None:
    """A twin that is 2 mrad off in its second joint has a largest gap of 2 mrad."""
    pair = make_pair(joints=2, offsets=(0.001, -0.002))
    (worst,) = AcmeTemplate().measure(pair, Params())
    assert isinstance(worst, api.Scalar)
    assert worst.value == pytest.approx(0.002)
