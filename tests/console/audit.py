"""An accessibility audit of the page as it is now: axe-core, run in the browser."""

from functools import cache
from pathlib import Path

import pytest

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
