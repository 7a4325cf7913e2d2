"""Parameter files: what ROS would ignore in silence is an error that names the near name."""

from pathlib import Path

import pytest

from robot_rl.errors import ConfigError
from ros_nodes.node.parameter_file import check_names, check_namespace, parameter_files, read_sections

EXAMPLE = Path(__file__).parents[3] / "launch/config/robot.yaml"


@pytest.fixture
def sections(tmp_path):
    def read(text):
        file = tmp_path / "robot.yaml"
        file.write_text(text, encoding="utf-8")
        return read_sections(file)

    return read


def test_the_example_names_only_what_exists():
    check_names(read_sections(EXAMPLE))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "/**/safety_node: {ros__parameters: {max_sped: 0.2}}",
            "did you mean 'max_speed'",
        ),
        (
            "/**/safty_node: {ros__parameters: {max_speed: 0.2}}",
            "did you mean 'safety_node'",
        ),
        ("cell: {safety_node: {ros__parameters: {box: {lo: [0]}}}}", "'box.lo'"),
        ("/**: {ros__parameters: {max_sped: 0.2}}", "unknown parameter for all nodes (/**) 'max_sped'"),
        ("/**/teleop_node: {ros__parameters: {deadband: 0.2}}", "set map (its dead_zone) instead"),
    ],
)
def test_unknown_nodes_and_parameters_are_refused_with_the_near_name(sections, text, expected):
    with pytest.raises(ConfigError) as error:
        check_names(sections(text))
    assert expected in str(error.value)


def test_every_problem_is_reported_at_once(sections):
    text = "/**/safety_node: {ros__parameters: {max_sped: 1, max_trn: 1}}\n/**/tleop_node: {ros__parameters: {}}"
    with pytest.raises(ConfigError) as error:
        check_names(sections(text))
    assert len(str(error.value).splitlines()) == 3


@pytest.mark.parametrize(
    "text",
    [
        "/**: {ros__parameters: {use_sim_time: false, max_speed: 0.1}}",
        "/**/robot_node: {ros__parameters: {of_some_driver: 1}}",
        "/**/task_node: {ros__parameters:}",
    ],
)
def test_what_ros_allows_and_our_nodes_have_is_taken(sections, text):
    check_names(sections(text))


@pytest.mark.parametrize(
    "text", ["", "[]", "safety_node: 1", "ros__parameters: {a: 1}", "a: {ros__parameters: 3}", "{", "a: b: c"]
)
def test_what_is_no_parameter_file_is_refused_in_one_line(sections, text):
    with pytest.raises(ConfigError) as error:
        sections(text)
    assert "robot.yaml" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("/**/safety_node", "/safety_node", True),
        ("/**/safety_node", "/left/arm/safety_node", True),
        ("/*/safety_node", "/left/safety_node", True),
        ("/*/safety_node", "/safety_node", False),
        ("safety_node", "/safety_node", True),
        ("safety_node", "/cell/safety_node", False),
        ("/cell/safety_node", "/cell/safety_node", True),
        ("/**", "/cell/safety_node", True),
        ("/cell/**", "/other/safety_node", False),
    ],
)
def test_patterns_fit_as_in_ros(sections, pattern, name, fits):
    (section,) = sections(f"{pattern}: {{ros__parameters: {{max_speed: 0.1}}}}")
    assert section.fits(name) is fits


def test_a_section_that_misses_the_namespace_is_refused(sections):
    made = sections("safety_node: {ros__parameters: {max_speed: 0.1}}")
    check_namespace(made, "/safety_node")
    check_namespace(made, "/cell/task_node")
    with pytest.raises(ConfigError, match=r"does not count for /cell/safety_node.*write /\*\*/safety_node"):
        check_namespace(made, "/cell/safety_node")


def test_sections_for_two_arms_are_fine_if_one_fits(sections):
    arms = (f"{arm}: {{safety_node: {{ros__parameters: {{max_speed: 0.1}}}}}}" for arm in ("left", "right"))
    check_namespace(sections("\n".join(arms)), "/left/safety_node")


def test_files_are_those_after_the_flag():
    assert parameter_files(
        ["node", "--ros-args", "--params-file", "a.yaml", "-p", "x:=1", "--params-file", "b.yaml"]
    ) == [
        Path("a.yaml"),
        Path("b.yaml"),
    ]


def test_a_list_as_ros2_launch_writes_it_is_a_list(tmp_path):
    path = tmp_path / "launch_params"
    path.write_text("/**:\n  ros__parameters:\n    settings: !!python/tuple\n    - task=reach\n    - seed=0\n")
    (section,) = read_sections(path)
    assert section.parameters == {"settings": ["task=reach", "seed=0"]}
