"""The laws against figures that others published for them."""

import numpy as np
import pytest

from twinstudio.mechanisms.chain import antiresonances, resonances
from twinstudio.mechanisms.friction import Law, sliding
from twinstudio.mechanisms.published import lugre_steady, sigmoid, smooth_stribeck
from twinstudio.mechanisms.thermal import Network, heat_up, steady, time_constants

# Open Source Leg, thermal model of its actuators
LEG = Network(
    winding_capacity=0.20 * 81.462027, case_capacity=512.24906585,
    winding_to_case=1.07028672, case_to_ambient=1.940662,
)  # fmt: skip
COPPER = 0.00393
# its resistance is given at 65 degC: 0.376 (1 + 0.00393 (T - 65))
LEG_OHMS = 0.376 * (1.0 - COPPER * 40.0)
LEG_COPPER = COPPER * 0.376 / LEG_OHMS

# Wernholt & Gunnarsson 2006, initial parameters of the grey-box robot arm example
SHARES = np.array([0.17910964111956, 0.61206166914114])
AXIS = 0.03291699877416 * np.append(SHARES, 1.0 - SHARES.sum())
SPRINGS = (20.59269827430799, 20.23072060978318)
DAMPERS = (0.0624181404729, 0.00987527995798)


def test_that_the_axis_resonates_where_its_parameters_say():
    frequencies, ratios = resonances(AXIS, SPRINGS, DAMPERS)
    np.testing.assert_allclose(frequencies, [9.028, 11.499], rtol=1e-4)
    np.testing.assert_allclose(ratios, [0.039, 0.077], atol=5e-4)
    np.testing.assert_allclose(
        antiresonances(AXIS, SPRINGS, DAMPERS)[0], [4.228, 10.390], rtol=1e-4
    )


def test_that_the_axis_has_its_friction_peak():
    speed = np.linspace(0.01, 3.0, 3000)
    friction = smooth_stribeck(
        speed, 0.00986346744839, 0.74302635727901, 3.98628540790595,
        (3.24015074090438, 0.79943497008153),
    )  # fmt: skip
    assert friction.max() == pytest.approx(0.8679, abs=5e-5)
    assert speed[friction.argmax()] == pytest.approx(0.452, abs=1e-3)


def test_that_the_panda_has_its_friction():
    # Gaz et al., RA-L 2019
    height = np.array([0.54615, 0.87224, 0.64068, 1.2794, 0.83904, 0.30301, 0.56489])
    slope = np.array([5.1181, 9.0657, 10.136, 5.5903, 8.3469, 17.133, 10.336])
    shift = np.array([0.039533, 0.025882, -0.04607, 0.036194, 0.026226, -0.021047, 0.0035526])
    fast = [0.2455, 0.3852, 0.3938, 0.5752, 0.3738, 0.1785, 0.2773]
    np.testing.assert_allclose(sigmoid(2.0, height, slope, shift), fast, atol=6e-5)
    assert sigmoid(-2.0, height, slope, shift)[0] == pytest.approx(-0.3006, abs=6e-5)
    np.testing.assert_array_equal(sigmoid(0.0, height, slope, shift), np.zeros(7))


def test_that_lugre_is_level_where_its_paper_says():
    # Canudas de Wit et al. 1995: Fc 1, Fs 1.5, ws 0.001, s2 0.4
    speed = np.array([0.001, 0.01])
    steady_force = lugre_steady(speed, (1.0, 1.5), 0.001) + 0.4 * speed
    np.testing.assert_allclose(steady_force, [1.18434, 1.00400], atol=5e-6)
    law = Law(coulomb=1.0, breakaway=1.5, stribeck=0.001, viscous=0.4)
    np.testing.assert_allclose(sliding(speed, law), steady_force, rtol=1e-12)


def test_that_bam_m1_of_the_erob80_is_coulomb_and_viscous():
    # Rhoban/bam, parameters of the eRob80:50
    law = Law(coulomb=4.097, breakaway=4.097, viscous=1.298)
    np.testing.assert_allclose(sliding(np.array([2.0, -2.0]), law), [6.693, -6.693], rtol=1e-12)


def test_that_bam_m6_of_the_erob80_counts_load_and_speed():
    law = Law(
        coulomb=3.259, breakaway=3.259 + 0.3204, viscous=1.403, stribeck=2.830,
        stribeck_exponent=1.786, load_motor=0.03566, load_external=0.000843,
        stribeck_load_motor=0.003771, stribeck_load_external=0.04144,
    )  # fmt: skip
    # w 1 rad/s, motor 20 N m, surroundings -15 N m, by hand:
    # gear |0.7132 + 0.012645| = 0.725845; Stribeck |0.07542 + 0.6216| = 0.69702
    # exp(-(1/2.83)^1.786) = 0.855564; 3.259 + 0.725845 + 0.855564 * 1.01742 + 1.403 = 6.258313
    assert sliding(1.0, law, 20.0, -15.0) == pytest.approx(6.258313, abs=1e-6)
    assert sliding(-1.0, law, 20.0, -15.0) == pytest.approx(-6.258313, abs=1e-6)


def test_that_the_leg_has_its_time_constants():
    np.testing.assert_allclose(time_constants(LEG), [16.89, 1026.3], rtol=5e-4)


@pytest.mark.parametrize(("current", "winding", "case"), [(5.0, 47.34, 37.98), (6.0, 61.14, 46.87)])
def test_that_the_leg_ends_at_its_temperatures(current, winding, case):
    warm = steady(LEG, current, LEG_OHMS, LEG_COPPER, 21.0)
    np.testing.assert_allclose(warm, [winding, case], atol=0.006)


def test_that_heat_along_a_log_is_exact_for_any_sampling():
    times = np.array([0.0, 3.0, 4.0, 90.0, 91.5, 4000.0])
    fine = np.linspace(0.0, 4000.0, 8001)
    power = np.array([12.0, 1.5])
    start = np.array([30.0, 25.0])
    coarse = heat_up(times, np.tile(power, (6, 1)), LEG, 21.0, start)
    dense = heat_up(fine, np.tile(power, (8001, 1)), LEG, 21.0, start)
    np.testing.assert_allclose(coarse[-1], dense[-1], rtol=1e-9)
    np.testing.assert_allclose(coarse[1], dense[6], rtol=1e-9)
