"""A person at the console, as a program: a real Chromium, a keyboard, a mouse, and a gamepad that is made up."""

import contextlib
import json
import re
import shutil

import pytest
from running import start

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

GAMEPAD = """
const pad = { id: "virtual gamepad", connected: true, axes: [0, 0, 0, 0], buttons: Array(16).fill({ pressed: false }) };
navigator.getGamepads = () => [pad];
window.virtualGamepad = (axes, pressed = []) => {
  pad.axes = axes;
  pad.buttons = pad.buttons.map((_, index) => ({ pressed: pressed.includes(index) }));
};
"""
SAID = "() => ['who', 'detail', 'owner', 'phase'].map((id) => document.getElementById(id)?.textContent)"
"""What the page says of who is in control."""
PATIENCE = 60_000
"""Longest wait for anything [ms]; machines are busy at times."""


@contextlib.contextmanager
def chromium(size=(1440, 900), **options):
    """A page of a browser; skips the test where there is none. Options are those of its context."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here (apt-get install chromium)")
    api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(GAMEPAD)
        try:
            yield context.new_page()
        finally:
            browser.close()


class Person:
    """What a person does at the page."""

    def __init__(self, page, url=None, name="Anna"):
        """Enters at the address; without one, they are in already."""
        self.page, self.errors = page, []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        if url is not None:
            page.goto(url)
            page.fill("#door-name", name)
            page.click("#door button")
        page.wait_for_selector(".link.up")

    def take_control(self):
        self.page.keyboard.press("t")
        self.page.wait_for_selector(".owned")
        self.until("who is in control", "document.querySelector('#owner').textContent === 'You are in control'")

    def until(self, what, condition):
        self._wait(what, f"() => {condition}")

    def until_title(self, text):
        self._wait(f"the title {text}", "text => document.querySelector('#who').textContent === text", arg=text)

    def _wait(self, what, function, **options):
        try:
            self.page.wait_for_function(function, **options)
        except Exception as error:
            said = self.page.evaluate(SAID)
            raise AssertionError(f"in vain for: {what}; the page says {said}, errors {self.errors}") from error

    def until_button(self, name):
        """Until the console offers that, and the page may ask for it."""
        self.page.wait_for_selector(f"#do-{name}:not([disabled])")

    def until_moved(self, steps):
        """Until an episode has gone on for some steps from now."""
        wanted = self.step + steps
        self._wait(
            f"step {wanted}",
            r"wanted => Number(/step (\d+)/.exec(document.querySelector('#detail').textContent)?.[1]) >= wanted",
            arg=wanted,
        )

    @property
    def step(self):
        found = re.search(r"step (\d+)", self.page.inner_text("#detail"))
        return int(found[1]) if found else 0

    def press(self, key):
        self.page.keyboard.press(key)

    @contextlib.contextmanager
    def holding(self, key):
        self.page.keyboard.down(key)
        try:
            yield
        finally:
            self.page.keyboard.up(key)

    def gamepad(self, axes=(0, 0, 0, 0), pressed=()):
        self.page.evaluate("([axes, pressed]) => virtualGamepad(axes, pressed)", [list(axes), list(pressed)])


@contextlib.contextmanager
def job(*arguments):
    """A command that serves the console; gives the process and where its console is."""
    process = start(*arguments)
    try:
        url = None
        while url is None:
            line = process.stderr.readline()
            assert line, f"it ended before it served the console, with {process.wait()}"
            url = next(iter(re.findall(r"operator console: (\S+)", line)), None)
        yield process, url
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def answer(process):
    """What a command that was begun with `--json` answers at its end."""
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return json.loads(out)
