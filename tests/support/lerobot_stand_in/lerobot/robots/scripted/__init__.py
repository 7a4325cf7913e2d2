"""Five joints and a gripper that follow their goals with a time constant; what happens to them is in a file."""

import dataclasses
import json
import math
import os
import time
from pathlib import Path

from lerobot.robots.config import RobotConfig

NAMES = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")


@RobotConfig.register_subclass("scripted_arm")
@dataclasses.dataclass
class ScriptedConfig(RobotConfig):
    port: str
    use_degrees: bool = False
    disable_torque_on_disconnect: bool = True


class Scripted:
    def __init__(self, config):
        assert config.use_degrees
        assert not config.disable_torque_on_disconnect
        self.config, self.is_connected = config, False
        self.position = dict(zip(NAMES, (0.0, -34.0, 52.0, 52.0, 0.0, 50.0), strict=True))
        self.goals, self.time = dict(self.position), time.monotonic()
        print("what a robot prints is no answer")

    def script(self):
        """What happens: entries of the file that the port names."""
        path = Path(self.config.port)
        return json.loads(path.read_text()) if path.exists() else {}

    @property
    def action_features(self):
        return {f"{name}.pos": float for name in NAMES}

    @property
    def is_calibrated(self):
        return self.script().get("calibrated", True)

    def connect(self, calibrate=True):
        assert not calibrate, "a dialogue would wait for ever"
        self.is_connected = True

    def disconnect(self):
        self.is_connected = False

    def get_observation(self):
        script = self.script()
        if "error" in script:
            raise ConnectionError(script["error"])
        if script.get("die"):
            os._exit(3)
        if script.get("hang"):
            time.sleep(60)
        now = time.monotonic()
        share = 1 - math.exp(-(now - self.time) / 0.05)
        self.time = now
        for name in NAMES:
            self.position[name] += share * (self.goals[name] - self.position[name])
        return {f"{name}.pos": value for name, value in self.position.items()} | {"front": "a picture"}

    def send_action(self, action):
        self.get_observation()
        self.goals |= {key.removesuffix(".pos"): value for key, value in action.items()}
        return action
