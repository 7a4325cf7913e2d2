from lerobot.robots.config import RobotConfig  # noqa: F401
