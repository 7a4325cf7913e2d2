// Keys, pads and gamepad, each as deflections of the same six axes and four buttons; the server does the rest.

const AXES = ["x", "y", "z", "roll", "pitch", "yaw"];
const MOTION = {
  ahead: ["x", 1], back: ["x", -1], left: ["y", 1], right: ["y", -1], up: ["z", 1], down: ["z", -1],
  turnLeft: ["yaw", 1], turnRight: ["yaw", -1], tiltAhead: ["pitch", 1], tiltBack: ["pitch", -1], tiltLeft: ["roll", -1], tiltRight: ["roll", 1],
};
const BUTTONS = ["close", "open", "take", "slow"];
const KEY_DEFLECTION = 0.75; // keys know no half way; Shift is a third of it
// The standard layout of the Gamepad API (w3.org/TR/gamepad).
const PAD = { success: 0, failure: 1, next_arm: 2, slow: 4, take: 5, open: 6, close: 7, discard: 8, primary: 9 };

export class Hands {
  constructor(onPress) {
    this.onPress = onPress; // receives "success", "failure", "discard", "primary", "next_arm" of a gamepad
    this.keys = new Map(); // actions that are held, by the place of their key
    this.pads = {};
    this.held = new Set(); // buttons of the page that are held: "close", "open"
    this.before = [];
  }

  // The key of an action went down; true if it is one that moves.
  press(action, code) {
    if (!(action in MOTION) && !BUTTONS.includes(action)) return false;
    this.keys.set(code, action);
    return true;
  }

  // A key went up; by its place, for its action may be another one by now.
  release(code) {
    this.keys.delete(code);
  }

  rest() {
    this.keys.clear();
    this.held.clear();
    this.pads = {};
  }

  // Makes an element a pad: dragging deflects the named axes, letting go centres it.
  pad(element, across, along) {
    const knob = element.querySelector(".knob");
    const move = (event) => {
      const box = element.getBoundingClientRect();
      const limit = (value) => Math.max(-1, Math.min(1, value));
      const right = across ? limit(((event.clientX - box.left) / box.width) * 2 - 1) : 0;
      const up = along ? limit(1 - ((event.clientY - box.top) / box.height) * 2) : 0;
      this.pads[element.id] = { ...(across && { [across]: -right }), ...(along && { [along]: up }) };
      knob.style.translate = `${(right * (box.width - 56)) / 2}px ${(-up * (box.height - 56)) / 2}px`;
    };
    const end = () => {
      delete this.pads[element.id];
      knob.style.translate = "";
      knob.classList.remove("active");
    };
    element.addEventListener("pointerdown", (event) => {
      if (element.closest("fieldset").disabled) return;
      element.setPointerCapture(event.pointerId);
      knob.classList.add("active");
      move(event);
    });
    element.addEventListener("pointermove", (event) => element.hasPointerCapture(event.pointerId) && move(event));
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) element.addEventListener(name, end);
  }

  // How everything is held now.
  read() {
    const sum = Object.fromEntries(AXES.map((axis) => [axis, 0]));
    const actions = new Set([...this.keys.values(), ...this.held]);
    const buttons = Object.fromEntries(BUTTONS.map((name) => [name, actions.has(name)]));
    for (const action of actions) {
      const [axis, sign] = MOTION[action] ?? [];
      if (axis) sum[axis] += sign * KEY_DEFLECTION;
    }
    for (const pad of Object.values(this.pads)) for (const [axis, value] of Object.entries(pad)) sum[axis] += value;
    this.gamepad(sum, buttons);
    return {
      axes: AXES.map((axis) => Math.max(-1, Math.min(1, Number(sum[axis].toFixed(3))))),
      buttons: BUTTONS.map((name) => buttons[name]),
    };
  }

  gamepad(sum, buttons) {
    const pad = [...(navigator.getGamepads?.() ?? [])].find((one) => one && one.connected);
    this.gamepadName = pad ? pad.id : null;
    if (!pad) return;
    const [leftX = 0, leftY = 0, rightX = 0, rightY = 0] = pad.axes;
    sum.x -= leftY;
    sum.y -= leftX;
    sum.z -= rightY;
    sum.yaw -= rightX;
    const down = (name) => Boolean(pad.buttons[PAD[name]]?.pressed);
    for (const name of BUTTONS) buttons[name] ||= down(name);
    const now = ["success", "failure", "discard", "primary", "next_arm"].filter(down);
    for (const name of now) if (!this.before.includes(name)) this.onPress(name);
    this.before = now;
  }
}
