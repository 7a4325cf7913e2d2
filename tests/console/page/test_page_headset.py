"""A tracked controller at the page: the tool follows the hand while the grip is held, and only then.

With ROBOT_RL_IWER, the file `iwer.min.js` of Meta's WebXR emulator (npm package iwer), that device is used, too.
"""

import math
import os
import time
from pathlib import Path

import numpy as np
import pytest
from browser import Person, chromium
from pages import Rig, eventually

from robot_rl.clock import NS_PER_S, FakeClock

pytestmark = [pytest.mark.slow, pytest.mark.wall_clock]

IWER = os.environ.get("ROBOT_RL_IWER", "")
VIRTUAL = """
// A headset that is made up: the parts of WebXR (w3.org/TR/webxr) that the page uses.
// `virtualHand` says where its right controller is, how it is turned, and which of its buttons are pressed;
// `virtualLeft` the same of the left one, which it has where `twoHands` is set.
{
  const at = (position, orientation, guessed) => ({ transform: { position, orientation }, emulatedPosition: guessed });
  const upright = { x: 0, y: 0, z: 0, w: 1 };
  const begins = { position: { x: 0, y: 1, z: -0.3 }, orientation: upright, pressed: [], seen: true, guessed: false };
  const hand = { ...begins }, left = { ...begins };
  const head = { position: { x: 0, y: 1.6, z: 0 }, orientation: upright };
  const controller = (handedness, hand) => {
    const button = (_, index) => ({ pressed: hand.pressed.includes(index) });
    const gamepad = { get buttons() { return Array.from({ length: 6 }, button); } };
    return { handedness, targetRayMode: "tracked-pointer", gripSpace: { hand }, gamepad };
  };
  class Session extends EventTarget {
    visibilityState = "visible";
    controllers = [...(window.twoHands ? [controller("left", left)] : []), controller("right", hand)];
    get inputSources() { return this.controllers.filter((one) => !one.gripSpace.hand.gone); }
    updateRenderState() {}
    async requestReferenceSpace() { return new EventTarget(); }
    requestAnimationFrame(draw) {
      const getPose = ({ hand }) => (hand.seen ? at(hand.position, hand.orientation, hand.guessed) : null);
      const frame = { session: this, getPose, getViewerPose: () => at(head.position, head.orientation, false) };
      setTimeout(() => this.ended || draw(performance.now(), frame), 14);
    }
    async end() { this.ended = true; this.dispatchEvent(new Event("end")); }
  }
  window.XRWebGLLayer = class {};
  const isSessionSupported = async (mode) => mode === "immersive-vr";
  Object.defineProperty(navigator, "xr", { value: { isSessionSupported, requestSession: async () => new Session() } });
  window.virtualHand = (change) => Object.assign(hand, change);
  window.virtualLeft = (change) => Object.assign(left, change);
  window.virtualHead = (orientation) => Object.assign(head, { orientation });
}
"""
EMULATED = """
;{
  const device = new IWER.XRDevice(IWER.metaQuest3);
  device.installRuntime({ forceInstall: true });
  // It says so of all that it emulates; of a real headset that means that the controller is not seen.
  Object.defineProperty(XRPose.prototype, "emulatedPosition", { get: () => false });
  const names = ["trigger", "squeeze", "", "thumbstick", "a-button", "b-button"];
  const right = device.controllers.right;
  device.position.set(0, 1.6, 0);
  window.virtualHand = ({ position: p, orientation: o, pressed, seen }) => {
    if (p) right.position.set(p.x, p.y, p.z);
    if (o) right.quaternion.set(o.x, o.y, o.z, o.w);
    if (pressed) names.forEach((name, index) => name && right.updateButtonValue(name, pressed.includes(index) ? 1 : 0));
    if (seen !== undefined) right.connected = seen;
  };
  window.virtualHead = (o) => device.quaternion.set(o.x, o.y, o.z, o.w);
  virtualHand({ position: { x: 0, y: 1, z: -0.3 } });
}
"""
NEAR = 0.007
"""How far from the hand the tool may come to rest, as small deflections count as none [m]."""
TRIGGER, GRIP, UPPER = 0, 1, 5


class RealClock(FakeClock):
    """Time passes for the robot as for the hand."""

    def sleep_until(self, stamp):
        time.sleep(max(0.0, (stamp - self.now()) / NS_PER_S))
        super().sleep_until(stamp)


DEVICES = [
    pytest.param(VIRTUAL, id="virtual"),
    pytest.param(
        IWER and Path(IWER).read_text(encoding="utf-8") + EMULATED,
        id="iwer",
        marks=pytest.mark.skipif(not IWER, reason="ROBOT_RL_IWER names no file of the WebXR emulator iwer"),
    ),
]


class Hand(Person):
    """A person with a headset."""

    def put_on(self, rig):
        self.rig = rig
        self.take_control()
        self.until_title("Policy")
        self.page.click("#headset")
        self.until("the session runs", "document.querySelector('#headset').textContent === 'Leave the headset'")

    def hold(self, right=0.0, up=0.0, back=0.0, *, pressed=(GRIP,), **more):
        """Where the hand is, from where it begins [m], and what it presses."""
        position = {"x": right, "y": 1.0 + up, "z": -0.3 + back}
        self.page.evaluate("hand => virtualHand(hand)", {"position": position, "pressed": list(pressed), **more})

    @property
    def tool(self):
        return self.rig.supervision.io.latest.T_base_tcp.position

    def brings_it_to(self, place):
        """Whether the tool comes to rest there."""
        arrived = lambda: np.linalg.norm(self.tool - place) < NEAR  # noqa: E731
        return eventually(lambda: arrived() and (time.sleep(0.5) or arrived()))


@pytest.fixture(params=DEVICES)
def hand(request, tmp_path):
    with chromium() as page, Rig(tmp_path, heartbeat=5.0, clock=RealClock) as rig:
        page.context.add_init_script(request.param)
        hand = Hand(page, rig.url)
        hand.put_on(rig)
        yield hand
        assert hand.errors == []


def test_the_tool_follows_the_hand_one_to_one_while_the_grip_is_held(hand):
    start = hand.tool.copy()
    hand.hold(back=-0.2, pressed=())
    time.sleep(0.5)
    assert hand.tool == pytest.approx(start, abs=NEAR), "without the grip nothing counts"
    hand.hold(back=-0.2)
    time.sleep(0.3)
    hand.hold(back=-0.25, right=-0.03, up=0.02)
    assert hand.brings_it_to(start + np.array([0.05, 0.03, 0.02])), (
        "ahead, left and up of the operator are the base's x, y, z"
    )
    there = hand.tool.copy()
    hand.hold(back=0.0, pressed=())
    time.sleep(0.3)
    hand.hold(back=0.0)
    time.sleep(0.5)
    assert hand.tool == pytest.approx(there, abs=NEAR), "a new grip begins where the tool is"
    hand.hold(back=0.04)
    assert hand.brings_it_to(there - np.array([0.04, 0.0, 0.0]))


def test_ahead_is_where_the_operator_looks(hand):
    turn = {"x": 0.0, "y": math.sin(math.pi / 4), "z": 0.0, "w": math.cos(math.pi / 4)}  # a quarter to the left
    hand.page.evaluate("turn => virtualHead(turn)", turn)
    start = hand.tool.copy()
    hand.hold()
    time.sleep(0.3)
    hand.hold(right=-0.04)
    assert hand.brings_it_to(start + np.array([0.04, 0.0, 0.0]))


def test_a_hand_that_is_lost_lets_the_tool_rest_and_the_upper_button_stops(hand):
    hand.hold()
    time.sleep(0.3)
    hand.hold(back=-0.06, seen=False)
    assert eventually(lambda: not hand.rig.console.devices.first.read().axes.any())
    lost = hand.tool.copy()
    hand.hold(back=-0.06, seen=True)
    time.sleep(0.5)
    assert hand.tool == pytest.approx(lost, abs=NEAR), "it goes on from where it is seen again"
    hand.hold(back=-0.06, pressed=(TRIGGER,))
    assert eventually(lambda: hand.rig.console.devices.first.read().buttons[0]), "the trigger closes the gripper"
    hand.hold(pressed=(UPPER,))
    assert eventually(lambda: "e-stop" in hand.rig.holds)


def test_each_hand_leads_an_arm_in_one_frame_though_the_bases_face_each_other(tmp_path):
    with chromium() as page, Rig(tmp_path, heartbeat=5.0, clock=RealClock, facing=True) as rig:
        page.context.add_init_script("window.twoHands = true;" + VIRTUAL)
        person = Hand(page, rig.url)
        person.put_on(rig)
        assert "right hand leads the left arm, your left hand the right arm" in page.inner_text("#hint")
        begins = {"x": 0, "y": 1, "z": -0.3}
        both = "hands => [virtualHand, virtualLeft].forEach((hand, i) => hand({ position: hands[i], pressed: [1] }))"
        page.evaluate(both, [begins, begins])
        time.sleep(0.3)
        ahead, aside = {**begins, "z": -0.33}, {**begins, "z": -0.32, "x": 0.02}
        page.evaluate(both, [ahead, aside])
        wanted = {"left": (0.03, 0.0, 0.0), "right": (-0.02, 0.02, 0.0)}  # in the base of each, by the first one's x
        near = lambda: all(np.abs(rig.robots[arm].position() - at).max() < NEAR for arm, at in wanted.items())  # noqa: E731
        assert eventually(near), {arm: robot.position() for arm, robot in rig.robots.items()}
        page.evaluate("virtualHand({ gone: true })")
        assert eventually(lambda: not any(rig.console.devices.first.read().buttons))
        assert rig.console.devices.other.read().buttons[2], "the left hand keeps its arm when the right one is gone"
        page.evaluate("virtualHand({ gone: false })")
        assert eventually(lambda: rig.console.devices.first.read().buttons[2])
        page.evaluate("virtualLeft({ pressed: [] })")
        assert eventually(lambda: not rig.console.devices.other.read().axes.any())
        assert rig.console.devices.first.read().buttons[2], "the right hand holds on"
        page.evaluate(f"virtualLeft({{ pressed: [{UPPER}] }})")
        assert eventually(lambda: "e-stop" in rig.holds), "either hand can stop"
        assert person.errors == []


def test_an_arm_that_measures_no_force_is_shown(tmp_path):
    with chromium() as page, Rig(tmp_path, forceless=True) as rig:
        anna = Person(page, rig.url)
        anna.take_control()
        anna.until("the arm is shown", "document.querySelector('#facts').textContent.includes('mm/s')")
        assert page.inner_text("#force") == "\N{EN DASH}"
        assert page.is_hidden("#headset")
        assert anna.errors == []
