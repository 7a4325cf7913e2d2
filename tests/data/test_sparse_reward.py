"""One function turns success into reward, and everybody who rewards uses it."""

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.data.sparse_reward import SUCCESS_REWARD, sparse_reward, success_reward

ROOT = Path(__file__).resolve().parents[2]


@given(st.integers(1, 200), st.booleans())
def test_the_return_of_an_episode_is_its_success(steps, success):
    reward = sparse_reward(steps, success)
    assert reward.dtype == np.float32
    assert reward.shape == (steps,)
    assert reward.sum() == reward[-1] == success_reward(success) == SUCCESS_REWARD * success


@given(st.booleans(), st.floats(0.1, 100))
def test_a_task_may_have_another_reward_of_success(success, value):
    assert success_reward(success, value) == (value if success else 0.0)


@pytest.mark.parametrize("success", [np.True_, np.False_, True, False])
def test_any_truth_value_becomes_a_plain_number(success):
    assert type(success_reward(success)) is float


def reward_conversions(path: Path) -> list[str]:
    """Lines that write `float(success)` or `return_range[1] if` by themselves."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            value = keyword.value
            if keyword.arg == "reward" and isinstance(value, ast.Call) and getattr(value.func, "id", "") == "float":
                argument = ast.unparse(value.args[0])
                if "success" in argument or "done" in argument:
                    found.append(f"{path}:{node.lineno}: {ast.unparse(keyword)}")
    return found


def test_nobody_else_turns_success_into_reward():
    files = [file for room in ("robot_rl", "sim", "ros_nodes") for file in (ROOT / room).rglob("*.py")]
    assert [line for file in files for line in reward_conversions(file)] == []
