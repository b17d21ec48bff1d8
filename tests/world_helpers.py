"""Small robots and scenes for the tests of the twin's world."""

from pathlib import Path

import numpy as np

from twinstudio.model.block import Block
from twinstudio.model.scene import Scene, load_scene
from twinstudio.model.signals import Layout, joint_signals

MS = 1_000_000

# Inertial frames that are turned and shifted, skewed axes, a link without inertia.
ARM = """<robot name="arm">
  <link name="base">
    <inertial><origin xyz="0.1 0.2 0.3" rpy="0.3 0.2 0.1"/><mass value="3"/>
      <inertia ixx="1" iyy="2" izz="2.5" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><origin xyz="0 0 0.5"/><geometry><box size="0.2 0.3 1"/></geometry></visual>
  </link>
  <link name="upper">
    <inertial><origin xyz="0.1 0.2 0.3" rpy="0.3 0.2 0.1"/><mass value="2"/>
      <inertia ixx="1" iyy="2" izz="2.5" ixy="0.1" ixz="0" iyz="0"/></inertial>
    <visual><geometry><cylinder radius="0.1" length="0.4"/></geometry></visual>
    <collision><geometry><cylinder radius="0.1" length="0.4"/></geometry></collision>
  </link>
  <link name="slider">
    <inertial><origin xyz="-0.1 0.2 0.3" rpy="0.3 -0.2 0.1"/><mass value="1"/>
      <inertia ixx="1" iyy="2" izz="2.5" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="tool"/>
  <joint name="turn" type="revolute"><parent link="base"/><child link="upper"/>
    <origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="0.6 0.8 0"/>
    <limit lower="-2" upper="2" effort="500" velocity="3"/></joint>
  <joint name="slide" type="prismatic"><parent link="upper"/><child link="slider"/>
    <origin xyz="0 0 1" rpy="0.4 0.2 0.3"/><axis xyz="0 0.8 0.6"/>
    <limit lower="-1" upper="1" effort="400" velocity="3"/></joint>
  <joint name="mount" type="fixed"><parent link="slider"/><child link="tool"/>
    <origin xyz="0.1 0.2 0.3" rpy="0.5 0 1"/></joint>
</robot>"""

# A point mass of 2 kg at 0.5 m below a horizontal axis.
PENDULUM = """<robot name="pendulum">
  <link name="base"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="bob"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    <inertia ixx="1e-9" iyy="1e-9" izz="1e-9" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="bob"/>
    <axis xyz="0 1 0"/><limit effort="100" velocity="10"/></joint>
</robot>"""

ARM_SCENE = """
name = "arm"
[robot]
model = "robot.urdf"
joints = ["turn", "slide"]
tcp = "tool"
home = ["10 deg", "50 mm"]
"""

PENDULUM_SCENE = """
name = "pendulum"
[robot]
model = "robot.urdf"
joints = ["hinge"]
tcp = "bob"
home = [0.0]
"""

BALL = """
[[objects]]
name = "floor"
shape = { kind = "box", size = [4.0, 4.0, 0.1] }
at = { position = [5.0, 0.0, -0.05] }

[[objects]]
name = "ball"
shape = { kind = "sphere", radius = 0.1 }
at = { position = [5.0, 0.0, 1.0] }
mass = 0.5
"""


def scene_in(folder: Path, toml: str = ARM_SCENE, urdf: str = ARM) -> Scene:
    """A scene made of the two texts, in `folder`."""
    (folder / "robot.urdf").write_text(urdf)
    (folder / "scene.toml").write_text(toml)
    return load_scene(folder)


def cell_block(world_or_scene, kinds, seconds=0.5, step=MS, seed=3):
    """Smooth motion around home; every signal is a sine of its own."""
    robot = world_or_scene.robot
    prismatic = ("slide", "axis")
    layout = Layout(joint_signals(robot.joints, prismatic, kinds=kinds))
    n = round(seconds * 1e9 / step)
    stamps = 5_000 * MS + np.arange(n, dtype=np.int64) * step
    time = (stamps - stamps[0])[:, None] / 1e9
    rng = np.random.default_rng(seed)
    joints = len(robot.joints)
    rate, size = rng.uniform(2.0, 9.0, joints), rng.uniform(0.02, 0.1, joints)
    parts = {
        "position": np.array(robot.home) + size * np.sin(rate * time),
        "velocity": size * rate * np.cos(rate * time),
        "effort": 20.0 * size * np.sin(rate * time),
    }
    values = np.hstack([parts[kind.split(".")[1]] for kind in kinds])
    return Block(layout, stamps, values)
