"""The base of a run: what plays it, its file in the run, and what it would have proposed in demonstrations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_rl.base_policy.base_file import BASE_FILE, read_base, save_base
from robot_rl.base_policy.chunk_player import ChunkPlayer, open_player
from robot_rl.base_policy.contract import BaseSetup, Report
from robot_rl.config.components import TrainConfig
from robot_rl.data.schema import Episode
from robot_rl.env.environment import Environment
from robot_rl.errors import CheckpointError
from robot_rl.learn.learner_port import LearnerPort

STEERED = "steering.network."
"""Where a policy has the network of the base whose noise it chooses."""


class RunBase:
    """The base that a run corrects.

    Args:
        player: Plays its chunks.
        kind: Of the base, as in `base.kind`.
        steered: Whether its noise is learned.
    """

    def __init__(self, player: ChunkPlayer, kind: str, steered: bool) -> None:
        self.player, self._kind, self._steered = player, kind, steered

    def prepare(self, run: Path, demonstrations: Iterable[Episode], report: Report) -> None:
        """Train the base if it is not, and keep it in the directory of the run.

        Raises:
            DataError: if nothing can be learned from these demonstrations.
            RunDirectoryError: if it cannot be written.
        """
        base, facts = self.player.base, dict[str, float]()
        if not base.trained:
            facts = base.train(demonstrations, report)
        save_base(run / BASE_FILE, self._kind, base, facts)

    def give(self, learner: LearnerPort) -> None:
        """Give a learner the network whose noise it learns, before it has learned; nothing where it learns a residual.

        Raises:
            CheckpointError: if it is of other sizes.
        """
        flow = self.player.base.flow
        if not self._steered or flow is None:
            return
        state = learner.state_dict()
        steered = {f"{STEERED}{name}": value.clone() for name, value in flow.state_dict().items()}
        state["algorithm"]["modules"]["policy"] |= steered
        learner.load_state_dict(state)

    def with_proposals(self, episode: Episode) -> Episode:
        """Return a recorded episode with what the base would have proposed in it."""
        return replace(episode, action_base=self.player.replay(episode))

    def facts(self) -> dict[str, str]:
        """Return which base it is, for the checkpoint."""
        return {"name": self.player.base.name, "identity": self.player.base.identity}


def check_base(base: RunBase | None, checkpoint: Mapping[str, Any]) -> None:
    """Check that a checkpoint is of a correction of this base.

    Raises:
        CheckpointError: naming both.
    """
    mine, saved = None if base is None else base.facts(), checkpoint.get("base")
    if saved != mine:
        raise CheckpointError(
            f"the checkpoint corrects the base {saved or 'none'}, and the one that is there is {mine or 'none'}; bring "
            "that one back, or start a new run"
        )


def kept_base(config: TrainConfig, run: Path | None) -> dict[str, Any] | None:
    """Return what the file of a base says, that of the run or else of the configuration; None where there is none.

    Raises:
        CheckpointError: if it cannot be read, or is of a base of another kind.
    """
    kind = config.base.kind
    if kind == "none":
        return None
    if run is not None and (run / BASE_FILE).exists():
        return read_base(run / BASE_FILE, kind)
    path = Path(config.base.path)
    return read_base(path, kind) if config.base.path and path.is_file() else None


def base_setup(config: TrainConfig, env: Environment, kept: Mapping[str, Any] | None) -> BaseSetup:
    """Return the inputs of the base of a configuration, and of what its file says."""
    state = None if kept is None else kept["state"]
    return BaseSetup(config.base.path, env.environment_spec, env.observation_specs, config, state)


@contextlib.contextmanager
def open_base(config: TrainConfig, env: Environment, run: Path | None) -> Iterator[RunBase | None]:
    """Open the base of a run, from its own file where it has one; None if it has no base.

    Args:
        config: The run's configuration.
        env: Where it proposes actions.
        run: The directory of the run, if it has one already; its `base.pt` comes before the path of the configuration.

    Raises:
        CheckpointError: if the base is not the one that the run began with.
        RobotRLError: as `make_base`.
    """
    kind, kept = config.base.kind, kept_base(config, run)
    setup = base_setup(config, env, kept)
    with open_player(setup) as player:
        if player is not None and kept is not None and player.base.identity != kept["identity"]:
            raise CheckpointError(
                f"the run corrects the base {kept['name']} ({kept['identity']}), and what is there now is "
                f"{player.base.identity}; a correction of one base is none of another: bring that one back, or start a "
                "new run"
            )
        yield None if player is None else RunBase(player, kind, config.steers)
