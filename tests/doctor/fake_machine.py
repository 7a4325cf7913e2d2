"""A machine made of files: what the kernel would report, written by a test."""

import os
from pathlib import Path

from robot_rl.doctor.contract.machine import Machine


class FakeMachine:
    """Folders for /sys, /proc, /dev and /etc, empty at first.

    Args:
        root: Where they are made.
        refused: Names of device nodes that this user may not use.
    """

    def __init__(self, root: Path, refused=(), **facts):
        self.root = root
        for name in ("sys", "proc", "dev", "etc"):
            (root / name).mkdir()
        self.machine = Machine(
            root / "sys",
            root / "proc",
            root / "dev",
            root / "etc",
            environment={},
            may_use=lambda path: path.name not in refused,
            folder=root,
            **facts,
        )

    def write(self, path: str, text: str = "") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def files(self, **texts: str) -> None:
        for path, text in texts.items():
            self.write(path, text)

    def link(self, path: str, target: str) -> None:
        link = self.root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, link)

    def process(self, number: int, name: str, *opened: str) -> None:
        self.write(f"proc/{number}/comm", f"{name}\n")
        for at, target in enumerate(opened):
            self.link(f"proc/{number}/fd/{at}", target)

    def usb(self, name: str, product: str, vendor: str, speed: int, classes, bus: int = 1, control: str = "on") -> None:
        folder = f"sys/bus/usb/devices/{name}"
        facts = {"idVendor": vendor, "idProduct": "0001", "product": product, "speed": str(speed), "busnum": str(bus)}
        for key, value in facts.items():
            self.write(f"{folder}/{key}", value + "\n")
        self.write(f"{folder}/power/control", control)
        for at, kind in enumerate(classes):
            self.write(f"{folder}/{name}:1.{at}/bInterfaceClass", kind)
