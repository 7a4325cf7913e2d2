import pytest
from env_contract import EnvContract
from fakes import fake_workcell

from robot_rl.env.registry import make_workcell, task_names


class TestSimulated(EnvContract):
    @pytest.fixture(params=task_names())
    def make_cell(self, request):
        return lambda: make_workcell(request.param)


class TestFake(EnvContract):
    @pytest.fixture
    def make_cell(self):
        return fake_workcell
