"""Files of heads: everything comes back bit for bit, and what is no head is refused and not executed."""

import os
import pickle
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_heads import FEATURES, classifier, progress_head, success_head

from robot_rl.errors import DataError
from robot_rl.reward.classifier.classifier import read_classifier_file
from robot_rl.reward.heads.head_file import read_tree, write_tree
from robot_rl.reward.heads.progress_head import read_progress_head_file
from robot_rl.reward.heads.success_head import SuccessHead
from robot_rl.reward.vlm.head_backend import read_head


def assert_same_fields(one, other):
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, torch.Tensor):
            assert torch.equal(a, b), field.name
        elif not isinstance(a, torch.nn.Module):
            assert a == b, field.name


@pytest.mark.parametrize("make", [success_head, progress_head])
def test_a_head_comes_back_and_computes_the_same_bits(tmp_path, make):
    head, features = make(), torch.randn(5, FEATURES, generator=torch.Generator().manual_seed(9))
    head.write(tmp_path / "deep" / "head.pt")
    again = read_head(tmp_path / "deep" / "head.pt")
    assert type(again) is type(head)
    assert_same_fields(head, again)
    assert torch.equal(again(features), head(features))


def test_a_classifier_comes_back_with_all_its_heads_and_gates(tmp_path):
    made = classifier()
    made.write(tmp_path / "c.pt")
    again = read_classifier_file(tmp_path / "c.pt")
    for camera, head in made.heads.items():
        assert_same_fields(head, again.classifier.heads[camera])
    for name in ("task", "slopes", "offset", "threshold", "consecutive", "gates", "facts"):
        assert getattr(again.classifier, name) == getattr(made, name), name
    assert made.cameras == again.classifier.cameras == ("front",), "a camera with slope 0 is not used"
    assert len(again.sha256) == 64


def test_what_was_read_stays_as_it_was_when_the_file_is_replaced(tmp_path):
    path = tmp_path / "head.pt"
    progress_head(0).write(path)
    file = read_progress_head_file(path)
    before = file.sha256
    progress_head(1).write(path)
    assert file.sha256 == before != read_progress_head_file(path).sha256


class _Bomb:
    """Runs a command when it is unpickled by somebody careless."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def contents(folder):
    """Files that are no heads."""
    whole = folder / "whole.pt"
    success_head().write(whole)
    tensors = folder / "tensors.pt"
    torch.save({"anything": torch.zeros(2)}, tensors)
    plain = folder / "list.pt"
    torch.save([1, 2], plain)
    bomb = folder / "bomb.pt"
    torch.save({"format": _Bomb(str(folder / "exploded"))}, bomb)
    return {
        "empty": b"",
        "text": b"no head",
        "half": whole.read_bytes()[: whole.stat().st_size // 2],
        "foreign": tensors.read_bytes(),
        "pickle": pickle.dumps(_Bomb(str(folder / "exploded"))),
        "bomb": bomb.read_bytes(),
    }


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("name", ["empty", "text", "half", "foreign", "pickle", "bomb"])
@pytest.mark.parametrize("read", [read_head, read_progress_head_file, read_classifier_file])
def test_foreign_content_is_refused_and_never_run(tmp_path, name, read):
    path = tmp_path / "file.pt"
    path.write_bytes(contents(tmp_path)[name])
    with pytest.raises(DataError, match=r"file\.pt: is no "):
        read(path)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("read", [read_head, read_progress_head_file, read_classifier_file])
def test_a_file_that_is_not_there_names_the_command_that_makes_one(tmp_path, read):
    with pytest.raises(DataError, match=r"none\.pt: no .* there; `robot-rl (label|classifier) train"):
        read(tmp_path / "none.pt")
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path)


def test_one_kind_of_head_is_not_taken_for_another(tmp_path):
    success_head().write(tmp_path / "s.pt")
    with pytest.raises(DataError, match="is no progress head: it is a head for labels of success"):
        read_progress_head_file(tmp_path / "s.pt")
    progress_head().write(tmp_path / "p.pt")
    with pytest.raises(DataError, match="is no reward classifier"):
        read_classifier_file(tmp_path / "p.pt")


@pytest.mark.parametrize(("make", "read"), [(success_head, read_head), (progress_head, read_progress_head_file)])
def test_another_version_is_refused(tmp_path, make, read):
    make().write(tmp_path / "h.pt")
    tree = torch.load(tmp_path / "h.pt", weights_only=True)
    write_tree(tmp_path / "h.pt", {**tree, "format": 99})
    with pytest.raises(DataError, match="this program reads"):
        read(tmp_path / "h.pt")


@settings(max_examples=25)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5),
        st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.lists(st.floats(-1, 1), max_size=4),
        max_size=5,
    )
)
def test_any_tree_of_numbers_and_strings_comes_back(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("tree") / "t.pt"
    write_tree(path, {**tree, "tensor": torch.arange(3)})
    found = read_tree(path, dict, "tree", "make one")
    assert torch.equal(found.pop("tensor"), torch.arange(3))
    assert found == tree


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.floats(0.1, 10), st.floats(-3, 3))
def test_a_success_head_does_not_depend_on_the_unit_of_its_features(seed, scale, offset):
    """Features in another unit, with mean and deviation in that unit, give the same logits."""
    head, features = success_head(), torch.randn(4, FEATURES, generator=torch.Generator().manual_seed(seed))
    other = SuccessHead(
        head.encoder, head.size, head.camera, head.task, head.trained_on, scale * head.mean + offset,
        scale * head.deviation, head.weight, head.bias,
    )  # fmt: skip
    torch.testing.assert_close(other.logits(scale * features + offset), head.logits(features), atol=2e-3, rtol=2e-3)


def test_progress_so_far_does_not_depend_on_what_comes_later():
    head, features = progress_head(), torch.randn(12, FEATURES, generator=torch.Generator().manual_seed(3))
    whole = head(features)
    for length in range(1, 12):
        torch.testing.assert_close(head(features[:length]), whole[:length], atol=1e-5, rtol=1e-5)
    assert np.ptp(whole.numpy()) > 0
