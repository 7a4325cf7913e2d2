"""The picture of a base's proposals beside what was carried out, read pixel by pixel."""

from dataclasses import replace

import numpy as np
from tagged import steps, valid

from robot_rl.viz.action_panel import BASE, EXECUTED, SIZE, ActionPanel


def where(picture, colour):
    """Rows and columns of the pixels of a colour."""
    return np.nonzero((picture == colour).all(-1))


def played(base, action, count=6):
    return [
        replace(step, action_base=np.array(base, np.float32), action=np.array(action, np.float32))
        for step in steps(valid(1, count))
    ]


def test_each_element_has_a_strip_with_the_proposal_and_what_was_carried_out():
    panel = ActionPanel()
    for step in played([1.0, -1.0], [0.0, 1.0]):
        panel.add(step)
    picture = panel.picture()
    assert picture.shape == (SIZE[1], SIZE[0], 3)
    strip = SIZE[1] / 2
    base, executed = where(picture, BASE), where(picture, EXECUTED)
    upper = {name: rows[rows < strip].mean() for name, (rows, _) in {"base": base, "executed": executed}.items()}
    lower = {name: rows[rows >= strip].mean() for name, (rows, _) in {"base": base, "executed": executed}.items()}
    assert upper["base"] < upper["executed"], "1 is above 0"
    assert lower["base"] > lower["executed"], "-1 is below 1"
    assert base[1].max() >= SIZE[0] - 2, "the newest step is at the right"
    assert base[1].min() > SIZE[0] / 2, "six steps of forty"


def test_without_a_base_there_is_nothing_to_show():
    panel = ActionPanel()
    for step in steps(valid(1, 3)):
        panel.add(step)
    assert panel.picture() is None
    panel.add(played([0.0, 0.0], [0.0, 0.0])[0])
    assert panel.picture() is not None
    panel.begin()
    assert panel.picture() is None
