"""The contract of labellers over all that there are, and over the example of docs/add/labeller.md."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from labeller_contract import LabellerContract, LabellerUnderTest
from model_server import MODEL, ModelServer, reply
from packages import install_package
from running import robot_rl
from scenes import stamped_store
from tiny_models import save_pair, save_qwen

from robot_rl.config.labelling import BudgetConfig, EndpointConfig, LabelConfig, LocalConfig, ProcessConfig
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.reward.answer import Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.heads.frame_features import FrameFeatures
from robot_rl.reward.heads.progress_head import ProgressHead, ProgressNet
from robot_rl.reward.heads.success_head import SuccessHead
from robot_rl.reward.query import Clip, Query, QueryKind
from robot_rl.reward.vlm.make_backend import make_backend

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add" / "labeller.md"
MODULE, PROGRAM = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
ENTRY_POINT, *_ = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
SIZE = 64


def brightness(request):
    """The answer of a server, by the mean of the images that it gets; of the form that the prompt wants."""
    means = [float(image.mean()) for image in request.images]
    form = request.payload["response_format"]["json_schema"]["schema"]["properties"]
    if "closer" in form:
        return reply(json.dumps({"seen": "", "closer": "first" if means[0] > means[1] else "second"}))
    if "frames" in form:
        rows = [{"frame": n, "seen": "", "percent": 100 * mean / 255} for n, mean in enumerate(means[1:], 1)]
        return reply(json.dumps({"frames": rows, "unsure": False}))
    return reply(json.dumps({"seen": "", "verdict": "success", "confidence": 100 * means[-1] / 255}))


@pytest.fixture(scope="module")
def server():
    with ModelServer(brightness) as running:
        yield running


class TestProgram(LabellerContract):
    """A model in a process of its own."""

    @pytest.fixture
    def labeller(self, tmp_path):
        (tmp_path / "serve.py").write_text(PROGRAM)
        process = ProcessConfig((sys.executable, "-I", "-S", str(tmp_path / "serve.py")))
        config = LabelConfig(backend="process", kind="progress", process=process)
        return LabellerUnderTest(lambda budget: make_backend(config, budget), QueryKind.PROGRESS)


class TestServer(LabellerContract):
    @pytest.fixture(params=["success", "progress", "preference"])
    def labeller(self, request, server):
        endpoint = EndpointConfig(url=server.url, model=MODEL, key_variable="NO_KEY")
        config = LabelConfig(kind=request.param, endpoint=endpoint)
        return LabellerUnderTest(lambda budget: make_backend(config, budget), QueryKind(request.param))


class TestSuccessHead(LabellerContract):
    @pytest.fixture
    def labeller(self, tmp_path):
        count = FrameFeatures("random", SIZE)(np.zeros((1, SIZE, SIZE, 3), np.uint8)).shape[1]
        weight = torch.randn(5, count, generator=torch.Generator().manual_seed(0)) / count**0.5
        head = SuccessHead(
            "random", SIZE, "front", "push the cube", ("e1",), torch.zeros(count), torch.ones(count), weight,
            torch.zeros(5),
        )  # fmt: skip
        head.write(tmp_path / "head.pt")
        config = LabelConfig(backend="head", head=str(tmp_path / "head.pt"))
        return LabellerUnderTest(lambda budget: make_backend(config, budget), QueryKind.SUCCESS)


class TestProgressHead(LabellerContract):
    @pytest.fixture
    def labeller(self, tmp_path):
        count = FrameFeatures("random", SIZE)(np.zeros((1, SIZE, SIZE, 3), np.uint8)).shape[1]
        generator = torch.Generator().manual_seed(0)
        basis = torch.randn(count, 8, generator=generator) / count**0.5
        head = ProgressHead(
            "random", SIZE, "front", "push the cube", (), torch.zeros(count), basis, ProgressNet(8).eval()
        )
        head.write(tmp_path / "head.pt")
        config = LabelConfig(backend="head", kind="progress", head=str(tmp_path / "head.pt"))
        return LabellerUnderTest(lambda budget: make_backend(config, budget), QueryKind.PROGRESS)


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory):
    pytest.importorskip("transformers", reason="needs transformers: pip install 'robot_rl[vlm]'")
    folder = tmp_path_factory.mktemp("clip") / "tiny"
    save_pair(folder, "clip")
    return folder


class TestClip(LabellerContract):
    @pytest.fixture
    def labeller(self, clip_folder):
        config = LabelConfig(backend="clip", kind="score", local=LocalConfig(model=str(clip_folder)))
        return LabellerUnderTest(lambda budget: make_backend(config, budget), QueryKind.SCORE)


@pytest.fixture(scope="module")
def qwen_folder(tmp_path_factory):
    pytest.importorskip("transformers", reason="needs transformers: pip install 'robot_rl[vlm]'")
    folder = tmp_path_factory.mktemp("qwen") / "tiny"
    save_qwen(folder)
    return folder


class TestQwen(LabellerContract):
    @pytest.fixture
    def labeller(self, qwen_folder):
        config = LabelConfig(backend="qwen", answer="logprobs", local=LocalConfig(model=str(qwen_folder)))
        return LabellerUnderTest(lambda b: make_backend(config, b), QueryKind.SUCCESS, size=(32, 32), frames=2)


# ------------------------------------------------------------ the example of the page


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The example as an installed package: its module, and the entry point that pip would write."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "red_labeller.py").write_text(MODULE)
    group, name, value = re.search(r'entry-points\."(.*?)"\]\n(\w+) = "(.*?)"', ENTRY_POINT).groups()
    install_package(folder, "red_labeller", {group: {name: value}})
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    sys.modules.pop("red_labeller", None)


class TestExample(LabellerContract):
    @pytest.fixture
    def labeller(self, package):
        return LabellerUnderTest(lambda budget: make_backend(LabelConfig(backend="red"), budget), QueryKind.SUCCESS)


def test_the_example_is_short():
    assert len(MODULE.splitlines()) <= 60


def test_the_example_measures_red(package):
    backend = make_backend(LabelConfig(backend="red"), Budget(BudgetConfig()))
    for colour, wanted in (((200, 10, 10), (1.0,)), ((10, 200, 10), (0.0,)), ((0, 0, 0), ())):
        frames = np.full((1, 8, 8, 3), colour, np.uint8)
        answer = backend.answer(Query(QueryKind.SUCCESS, "redden", (Clip("e", "f", "front", (0,), frames),)))
        assert answer.values == wanted
        assert (answer.status is Status.OK) == bool(wanted)
    with pytest.raises(ConfigError, match="backend=red has no answers for kind=progress"):
        make_backend(LabelConfig(backend="red", kind="progress"), Budget(BudgetConfig()))


def test_an_unknown_backend_names_those_that_there_are(package):
    with pytest.raises(UnknownNameError, match=r"backend .*blue.*openai, .*red"):
        make_backend(LabelConfig(backend="blue"), Budget(BudgetConfig()))


def test_the_example_labels_a_store_by_the_command_line(package, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(package))
    path = stamped_store(tmp_path / "s", 3)
    done = robot_rl("label", "run", path, "--set", "backend=red", "--set", "task=redden it", "--json")
    assert done.returncode == 0, done.stderr
    report = robot_rl("label", "report", path, "--json")
    assert json.loads(report.stdout)["labels"] == 3
