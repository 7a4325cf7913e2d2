// A tracked controller (WebXR) as a hand on the tool: while the grip is held, the tool follows the hand, one to one.
//
// What goes to the server are deflections, as of keys and pads; the loop is closed here, by where the tool is measured.
// All vectors of this file are along ahead, left and up of the operator, and (w, x, y, z) for quaternions.

const FULL = 0.04; // distance of the tool from where the hand wants it, at which it is commanded at full speed [m]
const FULL_TURN = 0.3; // the same of its attitude [rad]
// The layout "xr-standard" (w3.org/TR/webxr-gamepads-module-1).
const TRIGGER = 0, GRIP = 1, LOWER = 4, UPPER = 5;
const BUTTONS = ["close", "open", "take", "slow"];

// A vector of WebXR's space (right, up, backwards) along ahead, left and up of somebody who looks along -z.
const fromSpace = ({ x, y, z }) => [-z, -x, y];

function times([aw, ax, ay, az], [bw, bx, by, bz]) {
  return [aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by, aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw];
}
const conjugate = ([w, x, y, z]) => [w, -x, -y, -z];

// The turn of a quaternion as a vector [rad].
function turnOf([w, ...v]) {
  const length = Math.hypot(...v), sign = w < 0 ? -1 : 1;
  const scale = length < 1e-9 ? 2 : (2 * Math.atan2(length, sign * w)) / length;
  return v.map((part) => sign * part * scale);
}

// A vector, or the axis of a quaternion, turned about the vertical.
function turned([x, y, z], angle) {
  const c = Math.cos(angle), s = Math.sin(angle);
  return [c * x - s * y, s * x + c * y, z];
}

function bounded(vector, full) {
  const scale = Math.max(full, Math.hypot(...vector));
  return vector.map((part) => part / scale);
}

// What one hand has the tool of an arm do.
class Grip {
  constructor(stop) {
    Object.assign(this, { stop, origin: null, upper: true });
  }

  // The deflections that bring the tool to where the hand wants it. A hand that is not seen has let go.
  //
  // arm: as the server says it; heading: of what the operator means by ahead, in its base [rad].
  read(hand, arm, heading) {
    if (hand?.upper && !this.upper) this.stop();
    this.upper = hand?.upper ?? true;
    const held = { close: Boolean(hand?.close), open: Boolean(hand?.open), take: false, slow: false };
    let axes = [0, 0, 0, 0, 0, 0];
    if (!hand?.grip || !arm) this.origin = null;
    else {
      const origin = { hand, position: arm.position, quaternion: arm.quaternion, heading, name: arm.name };
      this.origin ??= origin;
      if (this.origin.heading !== heading || this.origin.name !== arm.name) this.origin = origin; // another picture, or arm
      held.take = true;
      axes = this.missing(hand, arm, heading);
    }
    return { axes: axes.map((value) => Number(value.toFixed(3))), buttons: BUTTONS.map((name) => held[name]) };
  }

  missing(hand, arm, heading) {
    const { origin } = this, looks = -origin.hand.looks;
    const wanted = turned(hand.position.map((value, axis) => value - origin.hand.position[axis]), looks);
    const moved = turned(arm.position.map((value, axis) => value - origin.position[axis]), -heading);
    const [ww, ...wv] = times(hand.quaternion, conjugate(origin.hand.quaternion));
    const [mw, ...mv] = times(arm.quaternion, conjugate(origin.quaternion));
    const turn = turnOf(times([ww, ...turned(wv, looks)], conjugate([mw, ...turned(mv, -heading)])));
    return [...bounded(wanted.map((value, axis) => value - moved[axis]), FULL), ...bounded(turn, FULL_TURN)];
  }
}

export class Headset {
  // stop() is the emergency stop; changed() is called when a session begins or ends.
  constructor(stop, changed) {
    Object.assign(this, { changed, session: null, hands: [], both: false, first: new Grip(stop), other: new Grip(stop) });
  }

  // The kind of session that there is, or null: with the real surroundings in view, if the device can.
  static async kind() {
    for (const mode of ["immersive-ar", "immersive-vr"]) if (await navigator.xr?.isSessionSupported(mode).catch(() => false)) return mode;
    return null;
  }

  // Begins a session; each() is called at every frame.
  async begin(mode, each) {
    const session = await navigator.xr.requestSession(mode, { optionalFeatures: ["local-floor", "dom-overlay"], domOverlay: { root: document.body } });
    const gl = document.createElement("canvas").getContext("webgl", { xrCompatible: true });
    session.updateRenderState({ baseLayer: new XRWebGLLayer(session, gl) });
    const space = await session.requestReferenceSpace("local-floor").catch(() => session.requestReferenceSpace("local"));
    session.addEventListener("end", () => {
      Object.assign(this, { session: null, both: false });
      this.letGo();
      this.changed();
    });
    // What was held, or where the hand was, does not count after a jump of the space or a pause of the device.
    space.addEventListener("reset", () => this.letGo());
    session.addEventListener("visibilitychange", () => this.letGo());
    const draw = (time, frame) => {
      session.requestAnimationFrame(draw);
      this.hands = session.visibilityState === "visible" ? this.look(frame, space) : [];
      each();
    };
    session.requestAnimationFrame(draw);
    this.session = session;
    this.changed();
  }

  end() {
    this.session?.end();
  }

  letGo() {
    this.hands = [];
    this.first.origin = this.other.origin = null;
  }

  // The hands in a frame, the right one first. Once there were two, the one that is left does not become the first.
  look(frame, space) {
    const viewer = frame.getViewerPose(space), sources = [...frame.session.inputSources];
    const right = sources.find((one) => one.handedness === "right"), others = sources.filter((one) => one !== right);
    this.both ||= Boolean(right && others.length);
    const hands = right || this.both ? [right, others[0]] : others;
    return hands.map((source) => (source ? this.lookAt(source, viewer, frame, space) : null));
  }

  // A hand: where, which way the operator looks, and what is held; null where it is not seen.
  lookAt(source, viewer, frame, space) {
    // A phone has no grip: it is the hand itself, while its screen is touched.
    const pose = source.gripSpace ? frame.getPose(source.gripSpace, space) : source.targetRayMode === "screen" ? viewer : null;
    if (!pose || !viewer || pose.emulatedPosition) return null;
    const down = (index) => Boolean(source.gamepad?.buttons[index]?.pressed);
    const { position, orientation: o } = pose.transform;
    const [ahead, left] = ((q) => [1 - 2 * (q[2] * q[2] + q[3] * q[3]), 2 * (q[1] * q[2] + q[0] * q[3])])([viewer.transform.orientation.w, ...fromSpace(viewer.transform.orientation)]);
    return {
      position: fromSpace(position), quaternion: [o.w, ...fromSpace(o)], looks: Math.atan2(left, ahead),
      grip: source.gripSpace ? down(GRIP) : true, close: down(TRIGGER), open: down(LOWER), upper: down(UPPER),
    };
  }

  // What the hands want, the second one of the arm beside; null without a session.
  //
  // arm, beside: as the server says them; heading: of the picture in which deflections are meant, in the base [rad].
  read(arm, beside, heading) {
    if (!this.session) return null;
    const [hand, second] = this.hands, other = this.other.read(second, beside, heading + (beside?.heading ?? 0));
    return { ...this.first.read(hand, arm, heading), ...(beside && { other }) };
  }
}
