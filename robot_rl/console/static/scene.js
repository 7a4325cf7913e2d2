// The arm in three dimensions: its links, the box that the tool may be sent to, set-point, force, way and cameras.
// Dragging or the arrow keys turn the view; the wheel, two fingers or + and - go nearer.

import { colour, ready } from "./charts.js";

const AXES = ["#e5484d", "#2f9e58", "#3b82f6"]; // x, y and z, as everywhere
const TURN = -0.85, TILT = 0.32, STEEPEST = 1.5; // of the view [rad]
const WAY_SECONDS = 6, FORCE_LENGTH = 84, TRIAD = 26, LINK_WIDTH = 0.055, FRONT = 100; // [s], [px at the limit], [px], [m], [m]
const EDGES = [0, 1, 3, 2].flatMap((corner, index, ring) => [[corner, ring[(index + 1) % 4]], [corner + 4, ring[(index + 1) % 4] + 4], [corner, corner + 4]]);

const add = (a, b, times = 1) => a.map((value, axis) => value + times * b[axis]);
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

// A vector turned by a quaternion (w, x, y, z).
function turned([w, x, y, z], v) {
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const t = cross([x, y, z], v).map((value) => 2 * value);
  return add(add(v, t, w), cross([x, y, z], t));
}

export class Scene {
  // whole: the button that shows the whole arm, or what is around the tool.
  constructor(canvas, whole) {
    Object.assign(this, { canvas, whole, all: false, near: 1, turn: TURN, tilt: TILT, way: [], fingers: new Map() });
    whole.addEventListener("click", () => {
      this.all = !this.all;
      this.near = 1;
      this.draw();
    });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.fingers.set(event.pointerId, [event.clientX, event.clientY]);
    });
    canvas.addEventListener("pointermove", (event) => this.fingers.has(event.pointerId) && this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => this.fingers.delete(event.pointerId));
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.zoom(Math.exp(-event.deltaY / 600)); }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  drag(event) {
    const [x, y] = this.fingers.get(event.pointerId), others = [...this.fingers].filter(([id]) => id !== event.pointerId);
    this.fingers.set(event.pointerId, [event.clientX, event.clientY]);
    if (others.length) {
      const [, [ox, oy]] = others[0];
      return this.zoom(Math.hypot(event.clientX - ox, event.clientY - oy) / (Math.hypot(x - ox, y - oy) || 1));
    }
    this.orbit((x - event.clientX) / 120, (event.clientY - y) / 120);
  }

  key(event) {
    const ways = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }, nearer = { "+": 1.2, "-": 1 / 1.2 };
    if (event.key in ways) this.orbit(...ways[event.key]);
    else if (event.key in nearer) this.zoom(nearer[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  orbit(turn, tilt) {
    this.turn += turn;
    this.tilt = Math.min(STEEPEST, Math.max(-STEEPEST, this.tilt + tilt));
    this.draw();
  }

  zoom(times) {
    this.near = Math.min(12, Math.max(0.3, this.near * times));
    this.draw();
  }

  // job: the facts of the job; arm: its newest state; source: who leads.
  show(job, arm, source) {
    const seconds = performance.now() / 1000;
    if (arm.stamp !== this.stamp) {
      const far = this.way.length && Math.hypot(...add(this.way.at(-1).at, arm.position, -1)) > 0.1; // put somewhere else
      if (far) this.way = [];
      this.way.push({ at: arm.position, seconds, who: source });
      while (seconds - this.way[0].seconds > WAY_SECONDS) this.way.shift();
      this.stamp = arm.stamp;
    }
    [this.job, this.arm] = [job, arm];
    this.draw();
  }

  draw() {
    if (!this.arm) return;
    this.canvas.dataset.height = this.canvas.parentElement.clientHeight;
    const { arm, job } = this, [context, width, height] = ready(this.canvas);
    this.whole.textContent = this.all ? "Around the tool" : "Whole arm";
    const corners = [...Array(8).keys()].map((corner) => add(arm.start, [0, 1, 2].map((axis) => job.workspace[(corner >> axis) & 1][axis])));
    this.aim(arm, corners, width, height);
    this.context = context;
    this.parts = [];
    this.box(corners);
    this.links(arm);
    this.tool(arm, corners[0][2]);
    this.cameras(arm);
    for (const part of this.parts.sort((a, b) => a.depth - b.depth)) part.paint();
    context.globalAlpha = 1;
    context.setLineDash([]);
    this.label(arm);
  }

  // Chooses the view: the middle of what is shown, its size, and where the eye is.
  aim(arm, corners, width, height) {
    const shown = [...corners, arm.position, ...(this.all ? [[0, 0, 0], ...(arm.links ?? [])] : [])];
    const low = [0, 1, 2].map((axis) => Math.min(...shown.map((point) => point[axis]))), high = [0, 1, 2].map((axis) => Math.max(...shown.map((point) => point[axis])));
    const size = Math.max(0.1, Math.hypot(...add(high, low, -1)));
    const [ct, st, ca, sa] = [Math.cos(this.tilt), Math.sin(this.tilt), Math.cos(this.turn), Math.sin(this.turn)];
    Object.assign(this, { middle: add(low, high).map((value) => value / 2), eye: [ct * ca, ct * sa, st], right: [-sa, ca, 0], up: [-st * ca, -st * sa, ct] });
    Object.assign(this, { away: 2.4 * size, focus: ((this.all ? 2.3 : 2.5) * Math.min(width, height) * this.near), width, height });
  }

  // A point of the base frame on the canvas: x, y [px], how near it is, and the scale there [px/m].
  place(point) {
    const d = add(point, this.middle, -1), depth = dot(d, this.eye), scale = this.focus / Math.max(this.away - depth, 0.05 * this.away);
    return { x: this.width / 2 + scale * dot(d, this.right), y: this.height / 2 - scale * dot(d, this.up), depth, scale };
  }

  // front: it is seen through what is before it.
  line(from, to, tone, width, { alpha = 1, dash = [], front = false } = {}) {
    const [a, b] = [this.place(from), this.place(to)], { context } = this;
    this.parts.push({ depth: (a.depth + b.depth) / 2 + (front ? FRONT : 0), paint() {
      Object.assign(context, { strokeStyle: tone, lineWidth: width, lineCap: "round", globalAlpha: alpha });
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(a.x, a.y);
      context.lineTo(b.x, b.y);
      context.stroke();
    } });
  }

  disc(at, radius, tone, filled = true) {
    const { x, y, depth } = this.place(at), { context } = this;
    this.parts.push({ depth: depth + FRONT, paint() {
      Object.assign(context, { strokeStyle: tone, fillStyle: tone, lineWidth: 2, globalAlpha: 1 });
      context.setLineDash([]);
      context.beginPath();
      context.arc(x, y, radius, 0, 7);
      filled ? context.fill() : context.stroke();
    } });
  }

  box(corners) {
    for (const [a, b] of EDGES) this.line(corners[a], corners[b], colour("soft"), 1, { alpha: 0.55 });
  }

  links({ links, position }) {
    if (!links) return this.line([0, 0, 0], position, colour("soft"), 1, { alpha: 0.4, dash: [2, 6] }); // where the base is
    links.forEach((point, index) => {
      if (index) this.line(links[index - 1], point, colour("link"), Math.max(2, LINK_WIDTH * this.place(point).scale));
    });
    this.line(links.at(-1), position, colour("link"), Math.max(2, 0.02 * this.place(position).scale));
  }

  // The tool, its height over the floor of the box, where it came from, where it is sent, and what pushes it.
  tool({ position, quaternion, target, force, peak_force }, floor) {
    const { scale } = this.place(position), below = [position[0], position[1], floor], cross = 0.012;
    this.line(position, below, colour("soft"), 1, { dash: [3, 4], front: true });
    for (const axis of [[cross, 0, 0], [0, cross, 0]]) this.line(add(below, axis), add(below, axis, -1), colour("soft"), 1.5);
    this.way.forEach(({ at, who }, index) => index && this.line(this.way[index - 1].at, at, colour({ policy: "policy", human: "human", script: "good" }[who] ?? "idle"), 2, { alpha: 0.25 + (0.75 * index) / this.way.length, front: true }));
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]].forEach((axis, index) => this.line(position, add(position, turned(quaternion, axis), TRIAD / scale), AXES[index], 3, { front: true }));
    this.disc(position, 4, colour("ink"));
    if (target) {
      this.line(position, target.position, colour("now"), 1.5, { dash: [2, 3], front: true });
      this.disc(target.position, 7, colour("now"), false);
    }
    if (!force) return;
    const newtons = Math.hypot(...force), length = (FORCE_LENGTH * newtons) / this.job.force_limit / scale;
    const tip = add(position, turned(quaternion, force.map((value) => value / (newtons || 1))), length);
    if (length * scale > 3) {
      const tone = colour(Math.max(newtons, peak_force) > 0.6 * this.job.force_limit ? "held" : "ink");
      this.line(position, tip, tone, 4, { front: true });
      this.disc(tip, 5, tone);
    }
  }

  cameras({ mounts }) {
    const { context } = this, tone = colour("idle"), depth = this.all ? 0.06 : 0.03;
    for (const [name, { position, quaternion }] of Object.entries(mounts)) {
      const frame = [[-1, -0.75], [1, -0.75], [1, 0.75], [-1, 0.75]].map(([x, y]) => add(position, turned(quaternion, [x * 0.5 * depth, y * 0.5 * depth, depth])));
      frame.forEach((corner, index) => {
        this.line(position, corner, tone, 1.5);
        this.line(corner, frame[(index + 1) % 4], tone, 1.5);
      });
      const { x, y, depth: near } = this.place(position);
      this.parts.push({ depth: near, paint: () => { Object.assign(context, { fillStyle: tone, globalAlpha: 1 }); context.fillText(name, x + 6, y - 6); } });
    }
  }

  // What it shows, for those who hear the page.
  label({ offset, target, force }) {
    const where = offset.map((value, axis) => `${"xyz"[axis]} ${Math.round(value * 1000) + 0}`).join(", ");
    const text = `The tool is at ${where} mm from where it started` + (target ? "; a ring shows where it is sent" : "") + (force ? "; an arrow shows the force on it" : "");
    if (this.canvas.getAttribute("aria-label") !== text) this.canvas.setAttribute("aria-label", text);
  }
}
