"""Pictures of the operator console in `docs/images`, with a real Chromium over a simulation in real time.

    python benchmarks/console_pictures.py RUN   # a run of `reach` that can be resumed; it is copied first

Needs the package playwright and a Chromium (`apt-get install chromium`).
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDE, TABLET, NARROW = (1440, 900), (1024, 768), (390, 844)
PATIENCE = 120_000  # [ms]


@contextlib.contextmanager
def console(*arguments: str) -> Iterator[str]:
    """Run a command with a console, and yield its address."""
    command = [str(Path(sys.executable).with_name("robot-rl")), *arguments]
    command += ["--console", "127.0.0.1:0", "--heartbeat", "8"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr or ():
            if found := re.search(r"operator console: (\S+)", line):
                yield found[1]
                return
        raise SystemExit(f"{' '.join(command)} ended without a console")
    finally:
        process.kill()
        process.wait()


def picture(page: Any, name: str, size: tuple[int, int], shown: str, dark: bool = False) -> None:
    """Save a small PNG with few colours of the page while the bar shows this title."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    if page.evaluate("() => document.documentElement.dataset.theme") != ("dark" if dark else "light"):
        page.click("#theme")
    page.evaluate("() => scrollTo(0, 0)")
    page.wait_for_timeout(1200)
    path = IMAGES / f"console_{name}.png"
    while True:
        title(page, shown)
        page.wait_for_timeout(400)
        page.screenshot(path=path)
        if page.text_content("#who") == shown:  # on a busy machine a picture takes long
            break
    Image.open(path).convert("RGB").quantize(192, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1000} kB")


def enter(page: Any, url: str) -> None:
    """Open the page and take control."""
    page.goto(url)
    page.fill("#door-name", "Anna")
    page.click("#door button")
    page.wait_for_selector(".camera img[src]")
    page.keyboard.press("t")
    page.wait_for_selector(".owned")


def title(page: Any, text: str) -> None:
    """Wait until the console shows this title."""
    page.wait_for_function("text => document.querySelector('#who').textContent === text", arg=text)


def main(run: Path) -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        executable = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        with console("demo", "peg_insert", "--episodes", "20", "--out", f"{folder}/demos") as url:
            enter(page, url)
            picture(page, "idle", WIDE, "Ready")
            picture(page, "tablet", TABLET, "Ready")
            picture(page, "narrow", NARROW, "Ready", dark=True)
        copy = shutil.copytree(run, Path(folder) / "run")
        with console("train", "--resume", "--out", str(copy), "--steps", "100000") as url:
            page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
            enter(page, url)
            page.wait_for_selector(".episode .mark")
            title(page, "Policy")
            picture(page, "training", WIDE, "Policy")
            title(page, "Policy")
            page.keyboard.down("w")
            title(page, "You lead")
            picture(page, "intervention", WIDE, "You lead", dark=True)
            page.keyboard.up("w")
            title(page, "Policy")
            page.keyboard.press("Escape")
            title(page, "Emergency stop")
            picture(page, "estop", WIDE, "Emergency stop")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
