"""Scene files: every mistake is one line that names file, key and expectation."""

import os
from pathlib import Path

import pytest

from twinstudio.model import config
from twinstudio.model.errors import SceneError
from twinstudio.model.scene import Scene, load_scene, resolve, shipped_scenes

ROBOT = """
name = "cell"
[robot]
model = "arm.urdf"
joints = ["j1", "j2"]
tcp = "tool"
home = ["90 deg", 0.0]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "arm.urdf").write_text("<robot name='arm'/>")
    return tmp_path


def load(folder: Path, text: str) -> Scene:
    (folder / "scene.toml").write_text(text)
    return load_scene(folder)


def test_that_angles_may_be_written_in_degrees(folder: Path) -> None:
    assert load(folder, ROBOT).robot.home == pytest.approx((1.5707963267948966, 0.0))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (ROBOT + "bas = 1\n", "unknown key 'robot.bas'; known keys here: model, joints"),
        (ROBOT + "[simulaton]\nstep = 1\n", "unknown key 'simulaton'; known keys here: name"),
        (ROBOT + 'base = {position = ["1 kg", 0, 0]}\n', "robot.base.position[0]': expected a len"),
        (
            ROBOT + "base = {position = [0, 0]}\n",
            "robot.base.position': expected array of length 3",
        ),
        (ROBOT + "[simulation]\nstep = '1 h'\n", "simulation.step': must be at most 0.02"),
        (ROBOT + "[simulation]\nstep = true\n", "simulation.step': expected float, got bool"),
        (ROBOT.replace(", 0.0]", "]"), "robot.home': expected 2 values, one a joint, got 1"),
        (ROBOT.replace('"j2"', '"j1"'), "robot.joints': a joint is named twice"),
        (ROBOT.replace("arm.urdf", "leg.urdf"), "robot.model': 'leg.urdf' is missing: there is no"),
        (ROBOT.replace("arm.urdf", "package://nowhere/a.urdf"), "package 'nowhere' is unknown"),
        (ROBOT.replace('tcp = "tool"\n', ""), "key 'robot.tcp' is missing"),
        (ROBOT + "[[objects]]\nname = 'a'\n", "objects[0]': give either model or shape"),
        (
            ROBOT + "[[objects]]\nname = 'a'\nshape = {kind = 'box', siz = [1, 1, 1]}\n",
            "unknown key 'objects[0].shape.siz'; known keys here: size",
        ),
        (
            ROBOT + "[[objects]]\nname = 'a'\nshape = {kind = 'box', size = [1, 1, '3 s']}\n",
            "objects[0].shape.size[2]': expected a length",
        ),
        (
            ROBOT + "[[objects]]\nname='a'\nshape={kind='sphere', radius=1}\n" * 2,
            "objects[1].name': 'a' is taken",
        ),
        (
            ROBOT + "[[objects]]\nname = 'a'\nshape = {kind = 'box', size = [1, 0, 1]}\n",
            "objects[0].shape': every length must be above 0",
        ),
        (ROBOT + "[twin]\nmode = 'flying'\n", "twin.mode'"),
        (ROBOT + "[cell]\nemulated = 'cell.toml'\n", "cell.emulated': 'cell.toml' is missing"),
        ("name = ", "is no valid TOML"),
    ],
)
def test_that_a_mistake_is_one_line_with_file_and_key(
    folder: Path, text: str, complaint: str
) -> None:
    with pytest.raises(SceneError) as caught:
        load(folder, text)
    message = str(caught.value)
    assert complaint in message
    assert message.startswith(str(folder / "scene.toml"))
    assert "\n" not in message


def test_that_a_missing_scene_lists_the_shipped_ones(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match="there is no scene"):
        load_scene(tmp_path / "nothing")
    assert "panda_cell" in shipped_scenes()


def test_that_an_unset_variable_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROBOTS", raising=False)
    with pytest.raises(SceneError, match="environment variable ROBOTS is not set"):
        resolve("${ROBOTS}/arm.urdf", folder, {})


def test_that_a_package_can_be_named_in_the_scene(folder: Path) -> None:
    assert resolve("package://here/arm.urdf", folder, {"here": "."}) == folder / "arm.urdf"


def test_that_the_folder_cannot_be_set_from_a_file() -> None:
    assert config.parse(ROBOT, Scene, where="x").folder == ""


def test_that_a_pipe_in_place_of_a_file_is_refused_at_once(tmp_path):
    pipe = tmp_path / "plugins.toml"
    os.mkfifo(pipe)
    with pytest.raises(SceneError, match=r"plugins\.toml: is no file"):
        config.load(pipe, Scene)
