"""Model files that would crash or confuse an engine are refused in one line."""

from pathlib import Path

import pytest

from twinstudio.model.errors import PhysicsError, SceneError
from twinstudio.model.scene import load_scene
from twinstudio.physics.models import inertia_problem, rewritten, tree_problem
from twinstudio.physics.world import World

SCENE = """name = "x"
[robot]
model = "r.urdf"
joints = ["j"]
tcp = "b"
home = [0.0]
"""
URDF = """<robot name="r"><link name="a"/><link name="b">{visual}</link>
<joint name="j" type="revolute"><parent link="a"/><child link="{child}"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>{more}</robot>"""
SECOND = '<joint name="k" type="fixed"><parent link="b"/><child link="{child}"/></joint>'


def urdf(child: str = "b", more: str = "", visual: str = "") -> str:
    return URDF.format(child=child, more=more, visual=visual)


def scene_in(folder: Path, model: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scene.toml").write_text(SCENE)
    (folder / "r.urdf").write_text(model)
    return folder


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (urdf(), ""),
        (urdf(child="a"), "link 'a' hangs on itself"),
        (urdf(more=SECOND.format(child="a")), "hangs on itself"),
        (urdf(more=SECOND.format(child="b")), "link 'b' has two parents"),
        ("no XML", ""),
    ],
)
def test_that_links_that_are_no_tree_are_told(model: str, problem: str) -> None:
    assert problem in tree_problem(model)
    assert bool(problem) == bool(tree_problem(model))


def test_that_a_ring_of_joints_does_not_crash_the_engine(tmp_path: Path) -> None:
    with pytest.raises(PhysicsError, match=r"r\.urdf: link 'a' hangs on itself"):
        World(load_scene(scene_in(tmp_path, urdf(child="a"))))


@pytest.mark.parametrize("model", ["", "hello", urdf()[:90]])
def test_that_a_model_that_is_no_xml_is_said_so(tmp_path: Path, model: str) -> None:
    with pytest.raises(PhysicsError, match=r"cannot load this model: .*line \d"):
        World(load_scene(scene_in(tmp_path, model)))


def test_that_a_folder_may_have_any_name(tmp_path: Path) -> None:
    mesh = '<visual><geometry><mesh filename="m &amp; n.obj"/></geometry></visual>'
    folder = scene_in(tmp_path / "Prüfstand & 'Co' <1>", urdf(visual=mesh))
    (folder / "m & n.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    scene = load_scene(folder)
    assert "Prüfstand &amp; &apos;Co&apos; &lt;1&gt;/m &amp; n.obj" in rewritten(
        folder / "r.urdf", scene
    )
    with World(scene) as world:
        assert world.geometry()


def test_that_a_scene_nested_without_end_is_no_fault(tmp_path: Path) -> None:
    folder = scene_in(tmp_path, urdf())
    (folder / "scene.toml").write_text("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(SceneError, match="is no valid TOML"):
        load_scene(folder)


@pytest.mark.parametrize(
    ("inertial", "problem"),
    [
        ('<mass value="-1"/>', "link 'arm': mass value='-1'; expected a finite number"),
        ('<mass value="nan"/>', "mass value='nan'"),
        ('<mass value="heavy"/>', "mass value='heavy'"),
        ('<mass value="1"/><inertia ixx="1" iyy="-2" izz="1"/>', "inertia iyy='-2'"),
        ('<mass value="1"/><inertia ixx="1" iyy="2" izz="inf"/>', "inertia izz='inf'"),
        ('<mass value="0"/><inertia ixx="0" iyy="0" izz="0"/>', ""),
    ],
)
def test_that_an_impossible_mass_is_named_with_its_link(inertial, problem):
    urdf = f"<robot name='r'><link name='arm'><inertial>{inertial}</inertial></link></robot>"
    found = inertia_problem(urdf)
    assert problem in found
    assert bool(problem) == bool(found)
