// The operator console: one connection, what it shows, and what it requests.

import { Cameras } from "./cameras.js";
import { Compass } from "./compass.js";
import { forceChart } from "./charts.js";
import { Measures, trainingCurves } from "./curves.js";
import { Delay } from "./delay.js";
import { Door, hello, secret } from "./door.js";
import { Episodes } from "./episodes.js";
import { Hands } from "./input.js";
import { KeyDialog, Keys } from "./keys.js";
import { Replay } from "./replay.js";
import { Scene } from "./scene.js";
import { Sounds } from "./sound.js";
import { emergency, handsHint, hint, status, task } from "./status.js";
import { Headset } from "./xr.js";

const $ = (id) => document.getElementById(id);
const INPUT_MS = 40; // period of the input of the page in control; the server holds after 200 ms of silence
const FORCE_SECONDS = 12;
const LABELS = { start: "Start", stop: "Stop here", discard: "Discard", redo: "Redo", success: "Success", failure: "Failure", finish: "Finish", reset: "Reset", pause: "Pause", resume: "Resume" };
const KEYS = { start: "primary", resume: "primary", finish: "primary", success: "success", failure: "failure", discard: "discard", redo: "redo", reset: "redo", stop: "stop", pause: "pause" };
const REASONS = ["stuck", "wrong way", "too much force", "unsafe", "to teach"];

let socket, state = null, job = null, forces = [], shownActions = "", shownRemark = 0, ledHere = false, closing = false, newest = null;
const send = (message) => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
const act = (what) => send({ type: "do", what, episode: state?.episode.id ?? "" }); // a judgement is of what is seen
const measures = new Measures($("measured"), $("measures"));
const sounds = new Sounds($("sound"));
const keys = new Keys(() => relabel());
const keyDialog = new KeyDialog($("help"), keys);
const compass = new Compass(keys);
const hands = new Hands((role) => (role === "primary" ? primary() : role === "next_arm" ? nextArm() : press(role)));
const scene = new Scene($("scene"), $("scene-whole"));
const headset = new Headset(() => act("e-stop"), () => render());
const label = (episode, success) => send({ type: "label", episode, success });
const views = new Cameras($("cameras"), () => send({ type: "seen" }), () => cinema());
const delay = new Delay((at) => send({ type: "ping", at }));
const replay = new Replay(() => ({ Authorization: `Bearer ${secret()}` }), label);
const episodes = new Episodes($("episodes"), $("tally"), (id) => replay.open(id).catch((error) => toast(error.message)), label);

// ------------------------------------------------------------------ connection

function connect() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
  socket.binaryType = "arraybuffer";
  socket.addEventListener("open", () => send(hello()));
  socket.addEventListener("message", ({ data }) => (typeof data === "string" ? receive(JSON.parse(data)) : views.show(data, delay.oneWay)));
  socket.addEventListener("close", (event) => {
    state = null;
    render();
    if (event.code === 4409) return displaced(); // coming back by itself, it would displace the next one
    if (event.code === 4401) return door.ask("That token is not the right one.");
    if (event.reason) toast(`The console sent this page away: ${event.reason}`);
    if (!closing) setTimeout(connect, 1000);
  });
}

function displaced() {
  write("who", "Disconnected");
  write("detail", "Too many pages are open, and another one came. Close one and reload this page to come back.");
  write("spoken", `${$("who").textContent}. ${$("detail").textContent}`);
}

function receive(message) {
  switch (message.type) {
    case "welcome":
      views.clear();
    // falls through
    case "job": // of tasks that take turns, that of another one
      job = message.job;
      document.body.dataset.job = job.kind;
      $("task").textContent = job.task;
      $("instruction").textContent = job.instruction;
      $("gripper").hidden = !job.gripper;
      $("pad-yaw").hidden = !job.action_axes.includes("yaw");
      $("limit").textContent = `of ${job.force_limit} N`;
      redraw();
      break;
    case "state":
      state = message;
      remember(state);
      if (state.arm) views.name(state.arm.cameras);
      render();
      break;
    case "curves":
      curves(message);
      break;
    case "pong":
      delay.answered(message.at);
      break;
    case "noted":
      toast(`Noted: ${message.text}`);
      break;
    case "labelled":
      toast(`${message.episode} is labelled a ${message.success ? "success" : "failure"}; the recording stays as it was`);
      replay.labelled(message.episode, message.success);
      break;
    case "error":
      toast(message.text);
  }
}

// Of a headset: its frames come where those of the page may not, and it is the page that is looked at.
let saidAt = 0;
function say() {
  if (!state?.mine || (document.hidden && !headset.session) || performance.now() - saidAt < INPUT_MS - 5) return;
  saidAt = performance.now();
  send({ type: "input", ...(headset.read(state.arm && { ...state.arm, name: state.chosen_arm }, state.other, heading()) ?? hands.read()), camera: followed() });
}
setInterval(say, INPUT_MS);

document.addEventListener("visibilitychange", () => {
  if (document.hidden && !headset.session) {
    hands.rest();
    send({ type: "hidden" });
  }
});
window.addEventListener("blur", () => hands.rest());
window.addEventListener("pagehide", () => { closing = true; socket?.close(); });

// ---------------------------------------------------------------------- drawing

function remember({ arm, episode, mine }) {
  const now = performance.now() / 1000;
  if (arm?.force) forces.push([now, Math.hypot(...arm.force)]);
  while (forces.length && now - forces[0][0] > FORCE_SECONDS) forces.shift();
  const led = episode.source === "human" && mine; // here, not at another page
  if (ledHere && !led && episode.source !== "hold" && job.kind !== "demo") askWhy();
  ledHere = led || (ledHere && episode.source === "hold");
}

// Writes a text only if it is another: what is written is looked at again by the browser and by what reads it out.
function write(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

function render() {
  sounds.follow(state, job);
  const [who, title, detail] = status(state, job);
  document.body.dataset.control = who;
  write("who", title);
  write("detail", detail);
  write("spoken", who === "held" || state?.question || state?.call ? `${title}. ${detail}` : title); // steps are seen, not read out
  write("link", state ? "connected" : "not connected");
  $("link").classList.toggle("up", Boolean(state));
  const stopped = Boolean(state && emergency(state));
  $("estop").classList.toggle("release", stopped);
  $("estop").firstChild.textContent = stopped ? "Release stop" : "Stop";
  $("pads").disabled = !state?.mine;
  $("next-arm").hidden = !state?.chosen_arm;
  write("chosen-arm", state?.chosen_arm ?? "");
  $("lease").disabled = !state || (Boolean(state.owner) && !state.mine);
  $("lease").firstChild.textContent = state?.mine ? "Give back" : "Take control";
  document.querySelector(".owner").classList.toggle("owned", Boolean(state?.owner));
  if (!state) return;
  write("owner", state.mine ? "You are in control" : state.owner ? `${state.owner} is in control` : "Nobody is in control");
  write("phase", task(state));
  actions();
  const pad = hands.gamepadName ? ` Gamepad: ${hands.gamepadName.split("(")[0].trim()}.` : "";
  write("hint", headset.session ? handsHint(state) : hint(state) + pad);
  write("headset", headset.session ? "Leave the headset" : "Headset or phone");
  if (state.arm) arm(state.arm);
  measures.show(state.episode);
  episodes.show(state.ended, state.mine);
  remarks(state.remarks);
  figures();
  views.mark(Boolean(state.episode.source));
  write("latency", delay.text(views.age));
  follow();
}

function figures() {
  if (job.kind === "demo") {
    write("count", `${state.kept.count}/${state.kept.wanted}`);
    write("count-unit", "kept");
  } else {
    const done = state.health.env_step ?? 0;
    write("count", done.toLocaleString("en"));
    write("count-unit", "steps");
  }
  write("force-now", state.arm?.force ? Math.hypot(...state.arm.force).toFixed(0) : "–");
}

function arm({ force, peak_force, offset, speed, gripper }) {
  const now = force ? Math.hypot(...force) : 0, share = Math.max(now, peak_force) / job.force_limit, seconds = performance.now() / 1000;
  write("force", force ? now.toFixed(1) : "–"); // not every arm measures it
  $("force").parentElement.className = `big ${share > 1 ? "over" : share > 0.6 ? "warn" : ""}`;
  forceChart($("force-chart"), forces.map(([time, value]) => [seconds - time, value]), job.force_limit, FORCE_SECONDS);
  scene.show(job, state.arm, state.episode.source);
  const rows = { "from start": `${offset.map((value, axis) => `${"xyz"[axis]} ${Math.round(value * 1000) + 0}`).join("  ")} mm`, speed: `${(speed * 1000).toFixed(0)} mm/s`, ...(force && { "peak force": `${peak_force.toFixed(1)} N` }), ...(job.gripper && { gripper: `${(gripper * 1000).toFixed(0)} mm` }) };
  $("facts").replaceChildren(...Object.entries(rows).flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
}

// ---------------------------------------------------------------------- buttons

function wanted() {
  const held = state.holds.some((hold) => hold.name !== "e-stop" && !hold.name.startsWith("device"));
  if (held) return ["resume", ...state.phase.requests.filter((name) => name === "discard")];
  return job.kind === "training" && state.phase.name !== "evaluating" ? ["success", "failure", "reset", "pause"] : [...state.phase.requests, "pause"];
}

function actions() {
  const names = wanted(), mine = state.mine, stopped = emergency(state);
  const key = names.join() + mine + stopped;
  if (key === shownActions) return;
  shownActions = key;
  const first = names.find((name) => ["start", "resume", "finish"].includes(name));
  $("actions").replaceChildren(
    ...names.map((name) => {
      const button = element("button", LABELS[name]);
      button.append(element("kbd", keys.label(KEYS[name])));
      button.id = `do-${name}`;
      button.disabled = (!mine && name !== "pause") || (stopped && name === "resume");
      button.className = name === first ? "primary wide" : name === "success" ? "good" : ["failure", "discard"].includes(name) ? "bad" : "";
      button.addEventListener("click", () => act(name));
      return button;
    }),
  );
}

const press = (name) => state && wanted().includes(name) && act(name);
const primary = () => state && !emergency(state) && ["start", "resume", "finish"].some((name) => wanted().includes(name) && (act(name), true));

$("estop").addEventListener("click", stop);
function stop() {
  if (!state || !emergency(state)) return act("e-stop");
  if (state.mine) act("release e-stop");
  else toast("Take control first; only who is in control may release the stop.");
}
// The chosen camera fills the page below the bar. Not the browser's own full screen: there Esc would leave it, and no stop
// would be sent.
function cinema() {
  document.body.classList.toggle("cinema");
  redraw();
}
$("cinema").addEventListener("click", cinema);

// The camera in whose picture the keys are meant: the large one, if its pose is known and nobody wants the base's axes.
let following = localStorage.getItem("follow") !== "no";
const followed = () => (following && state?.arm?.views[views.camera] ? views.camera : "");
const heading = () => (followed() ? state.arm.views[views.camera].heading : 0);
$("follow").addEventListener("click", toggleFollow);
function toggleFollow() {
  following = !following;
  localStorage.setItem("follow", following ? "yes" : "no");
  follow();
}
function follow() {
  const view = state?.arm?.views[views.camera];
  $("follow").hidden = !view;
  write("follow-text", following ? "Keys follow the picture" : "Keys follow the robot");
  compass.show(views.figure, view, following ? view?.heading : 0);
}

// What is printed on the keys, wherever the page names one.
function relabel() {
  for (const mark of document.querySelectorAll("[data-key]")) mark.textContent = keys.label(mark.dataset.key);
  shownActions = "";
  if (state) actions();
  keyDialog.draw();
}
$("lease").addEventListener("click", lease);
function lease() {
  if (state) send({ type: "lease", take: !state.mine });
}

$("next-arm").addEventListener("click", nextArm);
function nextArm() {
  if (state?.mine && state.chosen_arm) act("next_arm");
}

for (const name of ["close", "open"]) {
  $(name).addEventListener("pointerdown", () => hands.held.add(name));
  for (const end of ["pointerup", "pointerleave", "pointercancel"]) $(name).addEventListener(end, () => hands.held.delete(name));
}
hands.pad($("pad-xy"), "y", "x");
hands.pad($("pad-z"), null, "z");
hands.pad($("pad-yaw"), "yaw", null);

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !door.open) {
    event.preventDefault();
    for (const name of ["help", "replay"]) $(name).close(); // what is read is never in the way of a stop
    if (!event.repeat && !(state && emergency(state))) act("e-stop"); // it never releases
    return;
  }
  if (event.target.matches("input:not([type=range])") || document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = keys.action(event);
  if (state?.mine && hands.press(action, event.code)) return event.preventDefault();
  if (event.repeat) return;
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code);
  if (digit) views.choose(Number(digit[1]) - 1);
  else if (event.key === "?") keyDialog.show();
  else if (action === "primary") event.target.matches("button") || primary();
  else if (action in SHORTCUTS) SHORTCUTS[action]();
  else for (const name of ["success", "failure", "discard", "redo", "reset", "stop", "pause"]) if (KEYS[name] === action) press(name);
});
const SHORTCUTS = { control: lease, nextArm, cinema, follow: toggleFollow, correct: () => state?.mine && episodes.correct() };
// A button pressed by pointer does not keep the focus, or Enter and Space would press it again.
addEventListener("click", (event) => event.detail > 0 && event.target.closest("button")?.blur());
addEventListener("keyup", (event) => hands.release(event.code));

// ----------------------------------------------------------------------- lists

function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function remarks(rows) {
  const newest = rows.at(-1)?.number ?? 0;
  if (newest === shownRemark) return;
  shownRemark = newest;
  $("remarks").replaceChildren(...[...rows].reverse().map((row) => element("li", row.text)));
}

// Curves that come seldom have to be drawn again where their size or colours change.
function redraw() {
  if (newest) curves(newest);
}
addEventListener("resize", redraw);

// What the training has cost the operator, demonstrations included, and what the policy does without help.
function effortText({ person, success_alone: alone }) {
  if (!person) return "";
  const seconds = Math.round(person.seconds);
  const text = `You have helped ${Math.floor(seconds / 60)} min ${seconds % 60} s, ${person.takeovers} take-overs`;
  const whose = job?.turns ? `${job.task}: ` : "";
  return typeof alone === "number" ? `${text}; ${whose}success ${alone.toFixed(2)} without you` : text;
}

function curves(data) {
  newest = data;
  trainingCurves($("curves"), data);
  const { updates_per_s: rate, utd } = state?.health ?? {};
  $("health").textContent = rate === undefined ? "" : `${rate.toFixed(0)} updates/s, ${utd.toFixed(1)} per step`;
  $("effort").textContent = effortText(state?.health ?? {});
}

// ------------------------------------------------------------------ texts, door

function askWhy() {
  $("reasons").hidden = false;
  clearTimeout(askWhy.timer);
  askWhy.timer = setTimeout(() => ($("reasons").hidden = true), 15000);
}
for (const reason of REASONS) {
  const chip = element("button", reason);
  chip.addEventListener("click", () => {
    send({ type: "note", kind: "reason", text: reason });
    $("reasons").hidden = true;
  });
  $("reasons").append(chip);
}
$("note-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if ($("note").value.trim()) send({ type: "note", text: $("note").value.trim() });
  $("note").value = "";
  $("note").blur();
});

function toast(text) {
  const shown = element("p", text, "toast");
  $("toasts").append(shown);
  while ($("toasts").children.length > 3) $("toasts").firstChild.remove();
  setTimeout(() => shown.remove(), 5000);
}

$("help-open").addEventListener("click", () => keyDialog.show());
relabel();
keyDialog.wait(null);

Headset.kind().then((mode) => {
  $("headset").hidden = !mode;
  $("headset").addEventListener("click", () => {
    if (headset.session) return headset.end();
    if (!state?.mine) return toast("Take control first.");
    headset.begin(mode, say).catch((error) => toast(`The headset does not begin: ${error.message}`));
  });
});

function theme(name) {
  document.documentElement.dataset.theme = name;
  redraw();
}
theme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
$("theme").addEventListener("click", () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", next);
  theme(next);
});

const door = new Door(connect);
door.begin();
