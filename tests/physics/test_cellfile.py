"""The hidden truth of an emulated cell is read strictly."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import twinstudio.physics
from twinstudio.model.errors import SceneError
from twinstudio.model.scene import load_scene
from twinstudio.physics.cellfile import load_cell, parse_cell, per_joint

JOINTS = ("one", "two")
MINIMAL = """
[friction]
presliding = ["0.3 mrad"]
[motor]
armature = [0.1, 0.2]
torque_constant = ["0.1 N m/A"]
max_effort = [10, 5]
[controller]
stiffness = [100]
damping = [10]
[thermal]
resistance = ["1 ohm"]
winding_capacity = ["10 J/K"]
case_capacity = ["100 J/K"]
winding_to_case = ["1 K/W"]
case_to_ambient = ["2 K/W"]
[motion]
velocity = ["90 deg/s"]
acceleration = [3]
[[program]]
to = ["10 deg", 0.2]
"""


PAGE = Path(twinstudio.__file__).parent / "docs" / "emulated.md"


def parsed(text: str = MINIMAL):
    return parse_cell(text, JOINTS, where="cell.toml")


def complaint(text: str) -> str:
    with pytest.raises(SceneError) as caught:
        parsed(text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("cell.toml: ")
    return message


def test_that_quantities_become_si():
    truth = parsed()
    assert truth.friction.presliding == (pytest.approx(0.3e-3),)
    assert truth.motion.velocity == (pytest.approx(np.pi / 2),)
    assert truth.program[0].to == (pytest.approx(np.radians(10)), 0.2)


def test_that_an_effect_not_given_is_absent():
    truth = parsed()
    assert truth.friction.coulomb == (0.0,)
    assert truth.payload.mass == 0.0
    assert truth.command.latency == 0.0
    assert truth.controller.integral_time is None


def test_that_one_value_holds_for_all_joints():
    assert per_joint((2.0,), 3).tolist() == [2.0, 2.0, 2.0]
    assert per_joint((1.0, 2.0), 2).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[motor]", "[motor]\nbacklash = [1]", ("unknown key 'motor.backlash'", "armature")),
        ("[0.1, 0.2]", '["0.1 N m"]', ("motor.armature[0]", "a torque")),
        ("[0.1, 0.2]", "[0.1, 0.2, 0.3]", ("motor.armature", "2, one a joint, got 3")),
        ("[0.1, 0.2]", "[]", ("motor.armature", "got 0")),
        ("[0.1, 0.2]", "[-0.1]", ("motor.armature[0]", "at least 0")),
        ("stiffness = [100]", "stiffness = [0]", ("controller.stiffness", "above 0")),
        ("stiffness = [100]\n", "", ("'controller.stiffness' is missing",)),
        ('"10 deg", 0.2', '"10 deg"', ("program[0].to", "2 values", "got 1")),
        ("[motor]", "coulomb = [2]\nbreakaway = [1]\n[motor]", ("friction.breakaway", "Coulomb")),
        ("[motor]", "[links]\nhand = { inertia = [1] }\n[motor]", ("links.hand.inertia", "got 1")),
        ("[motor]", "[sensors]\neffort_side = 'far'\n[motor]", ("sensors.effort_side", "far")),
        ("[motion]", "[motion]\nvelocity = []", ("TOML",)),
    ],
)
def test_that_a_wrong_entry_is_one_line_naming_key_and_expectation(old, new, words):
    message = complaint(MINIMAL.replace(old, new, 1))
    for word in words:
        assert word in message


def test_that_a_program_is_needed():
    assert "program" in complaint(MINIMAL[: MINIMAL.index("[[program]]")])


def test_that_a_missing_file_is_named(tmp_path):
    with pytest.raises(SceneError, match=r"nothing\.toml.*cannot be read"):
        load_cell(tmp_path / "nothing.toml", JOINTS)


@pytest.mark.parametrize("name", ["panda_cell", "emps_axis"])
def test_that_the_shipped_cells_are_valid(name):
    scene = load_scene(name)
    truth = load_cell(scene.path(scene.cell.emulated), scene.robot.joints)
    assert truth.description
    assert truth.command.latency > 0.0


def test_that_the_example_on_the_page_is_a_cell():
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(parsed(example).program) == 2


def test_that_the_twin_reads_nothing_of_the_hidden_truth():
    hidden = {"cellfile", "celldrive", "cellfaults", "emulated", "emulatedcell", "mjmodel"}
    own = {*hidden, "sensors", "program", "lifetime", "__init__"}
    folder = Path(twinstudio.physics.__file__).parent
    others = [file for file in folder.glob("*.py") if file.stem not in own]
    assert any(file.stem == "world" for file in others)
    for file in others:
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = [alias.name for alias in node.names]
            parts = f"{getattr(node, 'module', '')}.{'.'.join(names)}".split(".")
            assert not hidden.intersection(parts), f"{file.name} imports {parts}"
