"""The registry of files: what one kind writes, only that kind reads."""

import dataclasses

import pytest

from robot_rl.system.model_files import CLASSIFIER, KINDS, SUCCESS_HEAD, kind_of

PARTS = {"weight": [1.0], "camera": "wrist"}
EVERY = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@EVERY
def test_what_a_kind_writes_it_reads_again(kind):
    tree = kind.tree(PARTS)
    assert kind_of(tree) is kind
    assert kind.parts(tree) == PARTS
    assert tree["format"] == kind.version


@EVERY
def test_another_kind_is_refused_by_its_name_and_with_the_source_of_the_right_one(kind):
    for other in set(KINDS.values()) - {kind}:
        with pytest.raises(ValueError, match=other.label) as caught:
            kind.parts(other.tree(PARTS))
        assert kind.source in str(caught.value)


@EVERY
def test_another_version_is_refused(kind):
    newer = dataclasses.replace(kind, version=kind.version + 1)
    with pytest.raises(ValueError, match=f"version {newer.version}, this program reads {kind.version}"):
        kind.parts(newer.tree(PARTS))


def test_files_are_laid_out_as_before():
    assert list(CLASSIFIER.tree(PARTS)) == ["format", "kind", *PARTS]
    assert list(SUCCESS_HEAD.tree(PARTS)) == ["format", *PARTS], "older than kinds"
    with pytest.raises(ValueError, match="unknown kind"):
        CLASSIFIER.parts({"format": 1, "kind": "banana"})
