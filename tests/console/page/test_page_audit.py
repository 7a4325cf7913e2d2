"""Everybody can read the page and have it read out, in each of its states: judged by axe-core in a real browser."""

import time
from functools import cache
from pathlib import Path

import pytest
from browser import Person, chromium
from pages import TOKEN, Rig

from robot_rl.env.supervision import E_STOP, PAUSE

pytestmark = pytest.mark.slow

CALM = 5.0
"""Time that a page may be silent while it is audited [s]; what silence does is tested elsewhere."""
TELEPHONE, TABLET, LAPTOP = (390, 844), (1024, 768), (1280, 800)
READABLE = 4.5
"""Contrast of text (WCAG 2.2, 1.4.3); that of stops has it in every state."""

RUN = """async ([rules]) => {
  const options = { ...axe._audit.checks["color-contrast"].options, ignoreLength: true }; // keys are single letters
  axe.configure({ checks: [{ id: "color-contrast", options }] });
  const { violations, incomplete } = await axe.run(document, {
    resultTypes: ["violations", "incomplete"], ...(rules && { runOnly: rules }),
  });
  const objections = violations.flatMap((rule) => rule.nodes.map((node) => {
    const why = [...node.any, ...node.all, ...node.none].map((check) => check.message).join("; ");
    return `${rule.id}: ${node.html.slice(0, 90)}: ${why.slice(0, 240)}`;
  }));
  const unread = incomplete.filter((rule) => rule.id === "color-contrast").flatMap((rule) => rule.nodes);
  return [objections, unread.map((node) => [node.target[0], node.html.slice(0, 90)])];
}"""


@cache
def axe():
    """The source of axe-core, as a package of PyPI brings it; skips the test where it is missing."""
    package = pytest.importorskip("axe_playwright_python", reason="needs the package axe-playwright-python")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def audit(page, rules=None):
    """What axe-core objects to, one line for each element; with rules, only to what they forbid.

    Contrasts that it cannot read, e.g. where a dialog partly covers a text, are computed from the colours alone.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe())
    objections, unread = page.evaluate(RUN, [rules])
    for selector, html in unread:
        objections += faint(page, selector) or ([] if contrasts(page, selector) else [f"{html} cannot be read"])
    return objections


def faint(page, selector):
    """Texts of elements in sight whose contrast is too small, those of disabled buttons too, which axe-core passes."""
    found = contrasts(page, selector)
    return [f"{html} has a contrast of {value:.2f}" for html, value in found if value < READABLE]


CONTRASTS = """([selector]) => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const blend = (colours) => { // opaque sRGB of colours laid over each other, the lowest first
    const key = colours.join();
    if (!known.has(key)) known.set(key, paint(colours));
    return known.get(key);
  };
  const paint = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const rgb = (value) => `rgb(${value.join(" ")})`;
  const mix = (below, above, share) => below.map((v, i) => v + share * (above[i] - v));
  const compose = ([at, ...inside], below) => { // ground and text of the innermost element, with each one's opacity
    const style = getComputedStyle(at), own = blend([rgb(below), style.backgroundColor]);
    const [ground, text] = inside.length ? compose(inside, own) : [own, blend([rgb(own), style.color])];
    return [mix(below, ground, Number(style.opacity)), mix(below, text, Number(style.opacity))];
  };
  const luminance = (rgb) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map((value) => linear(value / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const inSight = (one) => one.checkVisibility() && one.textContent.trim();
  const texts = [...document.querySelectorAll(selector)].filter(inSight);
  return texts.map((one) => {
    const chain = [];
    for (let at = one; at; at = at.parentElement) chain.unshift(at);
    const [low, high] = compose(chain, [255, 255, 255]).map(luminance).sort((a, b) => a - b);
    return [one.outerHTML.slice(0, 90), (high + 0.05) / (low + 0.05)];
  });
}"""


def contrasts(page, selector):
    """Texts of elements in sight, each with its contrast to its ground (WCAG 2.2, 1.4.3), from 1 to 21."""
    return page.evaluate(CONTRASTS, [selector])


class Findings:
    """The objections, each with the states in which it was found."""

    def __init__(self, page):
        self.page, self.found, self.states = page, {}, 0

    def look(self, state):
        self.states += 1
        for theme, rules in (("light", None), ("dark", ["color-contrast"])):  # colours are all that differs
            self.page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
            faults = {*audit(self.page, rules), *faint(self.page, "#who, #detail, .pad i, button, button kbd")}
            for objection in faults:
                self.found.setdefault(f"{theme}: {objection}", []).append(state)

    def none(self):
        """Fails with all of them."""
        lines = [f"{objection}\n    in {len(states)}: {', '.join(states)}" for objection, states in self.found.items()]
        assert not lines, "\n".join(lines)

    def look_at_button(self, selector, state):
        """While the pointer is over it, while it is pressed, and while the keyboard is on it."""
        box = self.page.locator(selector).bounding_box()
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.look(f"{state}, {selector} hovered")
        self.page.mouse.down()
        self.look(f"{state}, {selector} pressed")
        self.page.mouse.move(5, 700)
        self.page.mouse.up()
        self.page.focus(selector)
        self.look(f"{state}, {selector} focused")
        self.page.evaluate("() => document.activeElement.blur()")

    def look_at_sizes(self, state):
        for size in (TELEPHONE, TABLET, LAPTOP):
            self.page.set_viewport_size({"width": size[0], "height": size[1]})
            self.look(f"{state}, {size[0]} px wide")


LOOK = {"color_scheme": "light", "reduced_motion": "reduce"}
"""No transition is in the way of a colour."""


def test_a_training_has_no_barrier_in_any_state(tmp_path):
    with chromium(**LOOK) as page:
        findings = Findings(page)
        with Rig(tmp_path, "0.0.0.0", TOKEN, filmed=True, heartbeat=CALM) as rig:
            anna = look_at_a_training(rig, page, findings)
        anna.until_title("No connection")
        findings.look("no connection")
        assert anna.errors == []
    findings.none()
    assert findings.states > 30


def look_at_a_training(rig, page, findings):
    """From the door to the end; gives the person."""
    look = findings.look
    page.goto(rig.url)
    look("the door")
    page.fill("#door-name", "Anna")
    page.click("#door button")
    page.wait_for_selector("#door-token-label:not([hidden])")
    look("the door, after a wrong token")
    page.fill("#door-token", TOKEN)
    page.click("#door button")
    anna = Person(page)

    anna.until_title("Policy")
    rig.board.measure("classifier", 0.5)
    rig.board.metric("label", 10, {"value": 0.5})
    page.wait_for_selector("#measured:not([hidden])")
    look("the policy leads, nobody is in control")
    findings.look_at_button("#estop", "the policy leads")
    rig.board.remark("a remark")
    anna.take_control()
    look("Anna is in control")
    findings.look_at_button("#do-success", "Anna is in control")
    findings.look_at_button("#do-failure", "Anna is in control")
    with anna.holding("w"):
        anna.until_title("You lead")
        look("Anna leads")
    page.wait_for_selector("#reasons:not([hidden])")
    look("asked why")
    page.click("#reasons >> text=stuck")
    page.wait_for_selector(".toast")
    look("a toast")
    anna.press("y")
    page.wait_for_selector(".episode")
    rig.board.phase("training", "learning", ())
    look("an episode is listed")
    page.hover(".episode .correct")
    look("an episode's correction, hovered")
    page.click(".episode button:has-text('Replay')")
    page.wait_for_selector("#replay[open]")
    look("a replay")
    page.click("#replay button:has-text('Close')")
    page.click("#help-open")
    look("the list of keys")
    page.click("#key-ahead")
    look("a key to be changed")
    page.click("#help button:has-text('Close')")
    anna.press("f")
    findings.look_at_sizes("only the large camera")
    anna.press("f")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.hover("#cameras .camera:not(.chosen)")
    look("a small camera, hovered")
    rig.supervision.question = "classifier: success. Failure within 2 s overrules it."
    anna.until_title("Success?")
    look("a question")
    rig.supervision.question = ""
    rig.supervision.hold(PAUSE, "paused by Ben")
    anna.until_title("Held")
    look("held")
    findings.look_at_button("#do-resume", "held")
    anna.press("Escape")
    anna.until_title("Emergency stop")
    findings.look_at_button("#estop", "an emergency stop")
    findings.look_at_sizes("an emergency stop")
    anna.press("t")
    page.wait_for_selector(".owner:not(.owned)")
    look("an emergency stop, nobody is in control")
    for name in (E_STOP, PAUSE):
        rig.supervision.release(name)
    anna.until_title("Policy")
    findings.look_at_sizes("the policy leads")
    rig.board.phase("finished", "The training is over.", ())
    look("finished")
    return anna


def test_demonstrations_have_no_barrier_in_any_state(tmp_path):
    with chromium(LAPTOP, **LOOK) as page, Rig(tmp_path, job="demo", heartbeat=CALM) as rig:
        findings, anna = Findings(page), Person(page, rig.url)
        rig.board.kept(3, 9)
        for phase, requests in {
            "ready": ("start", "discard", "redo"),
            "waiting": ("discard",),
            "recording": ("stop", "success", "failure", "discard", "redo"),
            "complete": ("finish", "discard", "redo"),
        }.items():
            rig.board.phase(phase, "What to do now.", requests)
            anna.until("the buttons", f"document.querySelector('#do-{requests[0]}')")
            findings.look(phase)
            anna.take_control()
            findings.look(f"{phase}, in control")
            findings.look_at_button(f"#do-{requests[0]}", phase)
            anna.press("t")
            page.wait_for_selector(".owner:not(.owned)")
        assert anna.errors == []
    findings.none()


WATCH = """() => {
  window.spoken = [];
  for (const region of document.querySelectorAll("[role=status], [role=alert], [aria-live]")) {
    new MutationObserver(() => spoken.push(region.textContent.replace(/\\s+/g, " ").trim()))
      .observe(region, { childList: true, characterData: true, subtree: true });
  }
}"""


def test_only_a_change_of_the_status_is_spoken(tmp_path):
    with chromium() as page, Rig(tmp_path, heartbeat=5.0) as rig:
        anna = Person(page, rig.url)
        anna.until_title("Policy")
        page.evaluate(WATCH)
        before = anna.step
        time.sleep(1.5)
        assert anna.step > before, "steps are shown meanwhile"
        assert page.evaluate("() => spoken") == []
        anna.press("Escape")
        anna.until_title("Emergency stop")
        time.sleep(0.5)
        (spoken,) = page.evaluate("() => spoken")
        assert "Emergency stop" in spoken
        assert "emergency stop by Anna" in spoken
        assert page.locator("h1").count() == 1
