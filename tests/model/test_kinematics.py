"""Forward kinematics against closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstudio.model.errors import LayoutError
from twinstudio.model.kinematics import Kinematics, KinematicTree, Link
from twinstudio.model.rotations import matrix, pose, quaternion_of_rpy

ANGLE = st.floats(min_value=-3.1, max_value=3.1)


def planar_arm() -> Kinematics:
    """Two revolute joints about z, links of 1 m and 0.5 m along x, and a lift."""
    offset = lambda x: (x, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)  # noqa: E731
    links = (
        Link(name="base"),
        Link(name="upper", joint="a", parent=0, kind="revolute", coordinate=0),
        Link(name="lower", joint="b", parent=1, kind="revolute", origin=offset(1.0), coordinate=1),
        Link(name="lift", joint="c", parent=2, kind="prismatic", origin=offset(0.5), coordinate=2),
    )
    return Kinematics(KinematicTree(links=links, joints=("a", "b", "c"), tip="lift"))


@given(ANGLE, ANGLE, ANGLE)
def test_that_a_planar_arm_reaches_where_trigonometry_says(a: float, b: float, z: float) -> None:
    tool = planar_arm().tool(np.array([a, b, z]))
    expected = [np.cos(a) + 0.5 * np.cos(a + b), np.sin(a) + 0.5 * np.sin(a + b), z]
    assert tool[:3, 3] == pytest.approx(expected, abs=1e-12)


def test_that_a_batch_equals_its_rows() -> None:
    q = np.random.default_rng(1).uniform(-3, 3, (50, 3))
    arm = planar_arm()
    assert np.array_equal(arm.links(q)[17], arm.links(q[17]))
    assert arm.links(q)[:, 3] == pytest.approx(arm.tool(q), abs=1e-14)


def test_that_a_joint_vector_of_wrong_length_is_refused() -> None:
    with pytest.raises(LayoutError, match="the robot has 3 joints"):
        planar_arm().tool(np.zeros(2))


@given(ANGLE, ANGLE, ANGLE)
def test_that_pose_and_matrix_invert_each_other(roll: float, pitch: float, yaw: float) -> None:
    quaternion = np.array(quaternion_of_rpy((roll, pitch, yaw)))
    there = np.concatenate([[0.1, -0.2, 0.3], quaternion * np.sign(quaternion[3] or 1.0)])
    back = pose(matrix(there))
    assert matrix(back) == pytest.approx(matrix(there), abs=1e-12)
    assert back[6] >= 0.0
