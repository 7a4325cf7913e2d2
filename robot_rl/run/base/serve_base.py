"""Serve a base to runs on other machines."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from robot_rl.base_policy.contract import BasePolicy, make_base
from robot_rl.base_policy.run_base import base_setup, kept_base
from robot_rl.base_policy.serving import BaseServer
from robot_rl.config.components import TrainConfig
from robot_rl.errors import ConfigError
from robot_rl.run.base.base_environment import base_environment
from robot_rl.run.deployment import Deployment
from robot_rl.system.process import stop_on_signal

logger = logging.getLogger(__name__)


def serve_base(config: TrainConfig, host: str, port: int, deployment: Deployment | None = None) -> dict[str, Any]:
    """Serve the base of a configuration until Ctrl-C.

    Args:
        config: Task, observations and base.
        host: Where to listen.
        port: Of the host; 0: any that is free.
        deployment: The place whose task it is; None is this process. It is opened for its facts, then let go.

    Returns:
        Name and identity of the base, its address, and how many chunks were answered.

    Raises:
        ConfigError: if it has to be trained first.
        RobotRLError: if the base cannot be made, or it cannot listen there.
    """
    with base_environment(config, deployment or Deployment(), played=False) as (config, env):
        setup = base_setup(config, env, kept_base(config, None))

    def make() -> BasePolicy:
        return make_base(setup)

    with contextlib.closing(make()) as base:
        if not base.trained:
            raise ConfigError(f"base {base.name} is not trained yet; `robot-rl base train` makes the file of one")
        base.begin(0, None)  # refuses one that needs the environment
        facts = {"task": config.task, "name": base.name, "identity": base.identity}
    server = BaseServer(make, host, port, logger.info)
    logger.info("%s for %s is served on %s; Ctrl-C ends it", base.name, config.task, server.address)
    with stop_on_signal(server.stop):
        server.serve()
    return {**facts, "address": server.address, "plans": server.plans}
