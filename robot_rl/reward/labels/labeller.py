"""A labeller that was calibrated and validated on one store, for use on another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from robot_rl.config.labelling import LabelConfig
from robot_rl.config.reward import BudgetConfig
from robot_rl.data.schema import IMAGE_PREFIX
from robot_rl.data.store.layout import find_store
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError, DataError
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.apply import check_certified
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.current_labels import current_labels
from robot_rl.reward.validation.gates import GateResult
from robot_rl.reward.validation.ground_truth import read_truth
from robot_rl.reward.validation.probability_calibration import Calibration, read_calibration
from robot_rl.reward.validation.verdict import judge_labels

CURE = (
    "`robot-rl label calibrate` and `robot-rl label report` on that store show its errors; reward.truth=FILE adds "
    "outcomes by a person; reward.allow_uncalibrated=true takes the risk"
)


@dataclass(frozen=True)
class Labeller:
    """Settings and validation of a labeller.

    Attributes:
        name: Of its labels.
        config: Its settings.
        task: The instruction of the robot, in its prompt.
        identity: All that an answer depends on, besides the episode.
        calibration: Of its probabilities; None if there is none.
        gate: Whether its labels are fit to be a sparse reward, and why.
    """

    name: str
    config: LabelConfig
    task: str
    identity: Mapping[str, Any]
    calibration: Calibration | None
    gate: GateResult

    def within(self, budget: BudgetConfig) -> LabelConfig:
        """Return its settings with another budget."""
        return replace(self.config, budget=budget)


def read_labeller(
    path: Path, name: str, *, allowed: bool, kind: str = QueryKind.SUCCESS, outcomes: Path | None = None
) -> Labeller:
    """Read the labeller of the labels of that name.

    Args:
        path: The store that has them, or its run.
        name: Of the labels.
        allowed: Whether the user takes the risk of labels that are not shown to be fit.
        kind: The kind of label that the training needs.
        outcomes: CSV file of outcomes, e.g. by a person, as for `read_truth`.

    Raises:
        DataError: if there are no such labels, or they or the outcomes cannot be read.
        ConfigError: if they are labels of another kind.
        UncertifiedError: if they are unfit or not shown to be fit, and the user does not take the risk.
    """
    store_path = find_store(path)
    with EpisodeStore.open(store_path) as store, LabelStore(store_path) as labels:
        if (found := labels.kind(name)) != kind:
            raise ConfigError(
                f"labels {name!r} are of kind {found}; a training can be rewarded by labels of success "
                "(reward.kind=labels), or by preferences (reward.kind=preferences): set reward.labels to such"
            )
        file = labels.calibration_path(name)
        calibration = read_calibration(file) if file.exists() else None
        rows, trained_on = current_labels(store, labels.labels(name)).labels, labels.trained_on(name)
        truth = read_truth(store, outcomes=outcomes)
        gate = check_certified(found, judge_labels(found, rows, truth, calibration, trained_on), allowed, CURE)
        identity = labels.identity(name)
        return Labeller(
            name=name,
            config=_config(labels.settings(name), identity, store_path),
            task=str(identity["task"]),
            identity=identity,
            calibration=calibration,
            gate=gate,
        )


def labelled_views(path: Path, name: str) -> list[tuple[str, tuple[int, int]]]:
    """Return the cameras of the labels of that name, and height and width of their frames [px].

    Raises:
        DataError: if there are no such labels, or no episodes.
    """
    store_path = find_store(path)
    with EpisodeStore.open(store_path) as store, LabelStore(store_path) as labels:
        identity = labels.identity(name)
        cameras = [str(identity.get("camera", "")), *map(str, identity.get("also", ()))]
        for episode_id in store.ids():
            seen = store.read(episode_id).observations
            if all(IMAGE_PREFIX + camera in seen for camera in cameras):
                shapes = [seen[IMAGE_PREFIX + camera].shape for camera in cameras]
                return [(camera, (int(s[1]), int(s[2]))) for camera, s in zip(cameras, shapes, strict=True)]
    wanted = ", ".join(map(repr, cameras))
    raise DataError(f"{store_path}: no episode has frames of camera {wanted}, which labels {name!r} are about")


def _config(settings: Mapping[str, Any], identity: Mapping[str, Any], store: Path) -> LabelConfig:
    """Return the settings that are stored with the labels, with the version of the prompt that the labels were made by.

    Raises:
        DataError: if there are none.
    """
    try:
        config = TypeAdapter(LabelConfig).validate_json(json.dumps(settings))
    except ValidationError as error:
        raise DataError(
            f"{store}: its labels hold no settings of their labeller; label it anew under another name"
        ) from error
    config = replace(config, frames=replace(config.frames, camera=str(identity["camera"])))
    version = identity.get("second", identity).get("prompt_version")  # of a cascade, the second one has a prompt
    return config if config.prompt or version is None else replace(config, prompt_version=int(version))
