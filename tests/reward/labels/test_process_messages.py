import math

import pytest

from robot_rl.config.labelling import LabelConfig
from robot_rl.config.reward import BudgetConfig
from robot_rl.errors import LinkError
from robot_rl.reward.labels.process_messages import (
    TO_LABELLER,
    TO_TRAINING,
    EpisodeRecorded,
    Labelled,
    LabellerEnded,
    LabellerReady,
    LabellingOrder,
    Order,
    RoundDone,
    StoreOpened,
)
from robot_rl.reward.validation.probability_calibration import Calibration

CALIBRATION = Calibration("success", 0.5, -0.25, 0.5, ("a", "b"), 1)


@pytest.mark.parametrize("calibration", [None, CALIBRATION])
def test_an_order_arrives_as_it_was_given(calibration):
    config = LabelConfig(budget=BudgetConfig(calls=3))
    order = Order("success", config, "insert the peg", {"model": "m", "frames": [1, 2]}, calibration, True)
    received = TO_LABELLER.decode(TO_LABELLER.encode(LabellingOrder.of(order))).order()
    assert received == order


def test_an_order_of_another_version_is_refused():
    with pytest.raises(LinkError, match="not understood"):
        LabellingOrder({"name": "success", "colour": "red"}).order()


@pytest.mark.parametrize(
    "message",
    [
        LabellerReady(),
        Labelled("episode-1", "read", (0.25, 0.5), None, False, 0.0, 7),
        Labelled("episode-2", "read", (), 1.5, True, math.inf),
        RoundDone(("episode-1",), "no answer", 2.0),
        LabellerEnded("spent", failed=False),
    ],
)
def test_messages_of_the_labeller_arrive_as_they_were_sent(message):
    assert TO_TRAINING.decode(TO_TRAINING.encode(message)) == message


@pytest.mark.parametrize("message", [StoreOpened("/tmp/run/episodes"), EpisodeRecorded()])
def test_messages_of_the_training_arrive_as_they_were_sent(message):
    assert TO_LABELLER.decode(TO_LABELLER.encode(message)) == message
