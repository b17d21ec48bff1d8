"""Patches on a scene: promoted with provenance, checked, and taken back."""

from pathlib import Path

import pytest

from twinstudio.model.errors import SceneError
from twinstudio.model.patches import (
    FILE,
    Promoted,
    load_patched,
    origins,
    patched,
    patches_of,
    promote,
    take_back,
)
from twinstudio.model.results import Change, Patch
from twinstudio.model.scene import Scene, load_scene

TEXT = """
name = "cell"
[robot]
model = "arm.urdf"
joints = ["j1", "j2"]
tcp = "tool"
home = [0.0, 0.0]
[[objects]]
name = "cube"
shape = { kind = "box", size = [0.1, 0.1, 0.1] }
mass = 0.2
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    (tmp_path / "arm.urdf").write_text("<robot name='arm'/>")
    (tmp_path / "scene.toml").write_text(TEXT)
    return load_scene(tmp_path)


def patch(key: str, value: object) -> Patch:
    return Patch(name="fit", changes=(Change(key=key, value=value),), reason="fits better")  # type: ignore[arg-type]


def test_that_a_promoted_patch_changes_the_scene_and_not_its_file(scene: Scene) -> None:
    stack = promote(scene, patch("twin.position_gain", 0.25), run="r1")
    assert patched(scene, stack).twin.position_gain == 0.25
    assert load_scene(scene.folder) == scene
    assert patches_of(scene) == stack


def test_that_whoever_runs_the_scene_gets_it_patched(scene: Scene) -> None:
    promote(scene, patch("twin.behind", 0.1), run="r1")
    assert load_patched(scene.folder).twin.behind == 0.1


def test_that_an_object_is_found_by_its_name(scene: Scene) -> None:
    stack = promote(scene, patch("objects.cube.mass", 0.3), run="r1")
    assert patched(scene, stack).objects[0].mass == 0.3


def test_that_the_newest_patch_is_taken_back_first(scene: Scene) -> None:
    promote(scene, patch("twin.position_gain", 0.25), run="r1")
    promote(scene, patch("twin.position_gain", 0.5), run="r2")
    assert take_back(scene).run == "r2"
    assert patched(scene, patches_of(scene)).twin.position_gain == 0.25
    take_back(scene)
    with pytest.raises(SceneError, match="no patch to take back"):
        take_back(scene)


def test_that_every_patched_value_tells_nominal_value_and_run(scene: Scene) -> None:
    promote(scene, patch("objects.cube.mass", 0.3), run="r1")
    stack = promote(scene, patch("objects.cube.mass", 0.4), run="r2")
    (origin,) = origins(scene, stack)
    assert (origin.nominal, origin.value, origin.run) == (0.2, 0.4, "r2")


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("twin.gain", 0.1, "the scene has no 'twin.gain'; there are mode, behind"),
        ("objects.ball.mass", 0.1, "the scene has no 'objects.ball.mass'"),
        ("robot.home.j1.x", 0.1, "the scene has no"),
        ("twin.position_gain", 7.0, "key 'twin.position_gain': must be at most 1.0"),
        ("robot.home", (0.0,), "key 'robot.home': expected 2 values"),
        ("objects.cube.mass", -1.0, "mass': must be at least 0.0"),
    ],
)
def test_that_a_patch_that_does_not_fit_is_refused_and_not_kept(
    scene: Scene, key: str, value: object, complaint: str
) -> None:
    with pytest.raises(SceneError) as caught:
        promote(scene, patch(key, value), run="r1")
    assert complaint in str(caught.value)
    assert patches_of(scene) == ()


def test_that_a_broken_file_of_patches_is_named(scene: Scene) -> None:
    (Path(scene.folder) / FILE).write_text("{}")
    with pytest.raises(SceneError, match=FILE):
        patches_of(scene)


def test_that_a_patch_gives_a_link_its_mass_and_a_joint_its_friction(scene):
    changes = (
        Change(key="links.forearm.mass", value=0.9),
        Change(key="drive.friction.coulomb", value=(0.4, 0.2)),
    )
    patch = Patch(name="p", changes=changes, reason="r")
    found = patched(scene, (Promoted(patch=patch, run="a", when=0.0),))
    assert found.links["forearm"].mass == 0.9
    assert found.drive.friction.coulomb == (0.4, 0.2)


def test_that_a_patch_of_a_wrong_length_is_refused(scene):
    patch = Patch(
        name="p", changes=(Change(key="drive.friction.coulomb", value=(0.4,) * 3),), reason="r"
    )
    with pytest.raises(SceneError, match=r"drive\.friction\.coulomb.*expected 2 values.*got 3"):
        patched(scene, (Promoted(patch=patch, run="a", when=0.0),))
