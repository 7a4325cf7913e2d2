import dataclasses
from pathlib import Path


@dataclasses.dataclass(kw_only=True)
class RobotConfig:
    id: str | None = None
    calibration_dir: Path | None = None

    @classmethod
    def register_subclass(cls, name):
        def register(kind):
            cls.choices[name] = kind
            kind.type = name
            return kind

        return register

    @classmethod
    def get_known_choices(cls):
        return cls.choices

    @classmethod
    def get_choice_class(cls, name):
        return cls.choices[name]


RobotConfig.choices = {}
