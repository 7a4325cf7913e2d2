// The operator console: one connection, what it shows, and what it requests.

import { curve, forceChart, rollingMean, workspaceMap } from "./charts.js";
import { Episodes } from "./episodes.js";
import { Hands } from "./input.js";
import { Replay } from "./replay.js";

const $ = (id) => document.getElementById(id);
const INPUT_MS = 40; // period of the input of the page in control; the server holds after 200 ms of silence
const FORCE_SECONDS = 12;
const LABELS = { start: "Start", stop: "Stop here", discard: "Discard", redo: "Redo", success: "Success", failure: "Failure", finish: "Finish", reset: "Reset", pause: "Pause", resume: "Resume" };
const KEYS = { start: "Enter", resume: "Enter", finish: "Enter", success: "Y", failure: "N", discard: "X", redo: "R", reset: "R", stop: "B", pause: "P" };
const REASONS = ["stuck", "wrong way", "too much force", "unsafe", "to teach"];

let socket, state = null, job = null, forces = [], shownActions = "", shownRemark = 0, lastSource = null, closing = false, newest = null;
const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? sessionStorage.getItem("token") ?? "";
if (token) sessionStorage.setItem("token", token);
history.replaceState(null, "", location.pathname); // the token is no part of what people copy or photograph
const secret = () => sessionStorage.getItem("token") ?? "";
const send = (message) => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));
const act = (what) => send({ type: "do", what });
const hands = new Hands((role) => (role === "primary" ? primary() : press(role)));
const label = (episode, success) => send({ type: "label", episode, success });
const replay = new Replay(() => ({ Authorization: `Bearer ${secret()}` }), label);
const episodes = new Episodes($("episodes"), $("tally"), (id) => replay.open(id).catch((error) => toast(error.message)), label);

// ------------------------------------------------------------------ connection

function connect() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
  socket.binaryType = "arraybuffer";
  socket.addEventListener("open", () => send({ type: "hello", name: sessionStorage.getItem("name") || "operator", token: secret() }));
  socket.addEventListener("message", ({ data }) => (typeof data === "string" ? receive(JSON.parse(data)) : picture(data)));
  socket.addEventListener("close", (event) => {
    state = null;
    render();
    if (event.code === 4401) return askWho("That token is not the right one.");
    if (event.reason) toast(`The console sent this page away: ${event.reason}`);
    if (!closing) setTimeout(connect, 1000);
  });
}

function receive(message) {
  switch (message.type) {
    case "welcome":
      job = message.job;
      cameras = null;
      document.body.dataset.job = job.kind;
      $("task").textContent = job.task;
      $("instruction").textContent = job.instruction;
      $("gripper").hidden = !job.gripper;
      $("pad-yaw").hidden = !job.action_axes.includes("yaw");
      $("limit").textContent = `of ${job.force_limit} N`;
      break;
    case "state":
      state = message;
      remember(state);
      if (state.arm && String(state.arm.cameras) !== String(cameras)) makeCameras(state.arm.cameras);
      render();
      break;
    case "curves":
      curves(message);
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

setInterval(() => {
  if (state?.mine && !document.hidden) send({ type: "input", ...hands.read() });
}, INPUT_MS);

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    hands.rest();
    send({ type: "hidden" });
  }
});
window.addEventListener("blur", () => hands.rest());
window.addEventListener("pagehide", () => { closing = true; socket?.close(); });

// ----------------------------------------------------------------------- video

const shownAt = [];
let cameras = null; // unknown until the robot was read for the first time
function makeCameras(names) {
  cameras = names;
  const figures = names.map((name) => {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption"), image = document.createElement("img");
    figure.className = "camera";
    image.alt = `live view ${name}`;
    caption.textContent = name;
    figure.append(image, caption);
    return figure;
  });
  const none = document.createElement("p");
  none.className = "no-camera";
  none.textContent = "This robot shows no camera.";
  $("cameras").replaceChildren(...(figures.length ? figures : [none]));
  send({ type: "seen" });
}

async function picture(data) {
  const number = new Uint8Array(data, 0, 1)[0], image = $("cameras").children[number]?.firstChild;
  if (!image) return;
  const url = URL.createObjectURL(new Blob([new Uint8Array(data, 1)], { type: "image/jpeg" }));
  const before = image.src;
  image.src = url;
  shownAt[number] = performance.now();
  await image.decode().catch(() => {});
  if (before) URL.revokeObjectURL(before);
  if (number === cameras.length - 1) send({ type: "seen" }); // requests the next ones only when these are shown
}

// ---------------------------------------------------------------------- drawing

function remember({ arm, episode }) {
  const now = performance.now() / 1000;
  if (arm) forces.push([now, Math.hypot(...arm.force)]);
  while (forces.length && now - forces[0][0] > FORCE_SECONDS) forces.shift();
  if (lastSource === "human" && (episode.source === "policy" || episode.source === null) && job.kind !== "demo") askWhy();
  lastSource = episode.source === "hold" ? lastSource : episode.source;
}

function control() {
  if (!state) return ["nobody", "No connection", "Trying again. The arm holds where it is if you were leading it."];
  const { holds, episode, phase, mine, owner } = state;
  if (holds.some((hold) => hold.name === "e-stop")) return ["held", "Emergency stop", holds[0].reason];
  if (holds.length) return ["held", "Held", holds.map((hold) => hold.reason).join(" · ")];
  if (state.question) return ["human", "Success?", state.question];
  if (phase.name === "finished") return ["nobody", "Finished", phase.text];
  const step = episode.source ? `${episode.id}, step ${episode.step} of ${job.max_steps}` : phase.text;
  if (phase.name === "recording" || episode.source === "human") return ["human", mine ? "You lead" : `${owner ?? "A person"} leads`, step];
  if (episode.source === "hold" && state.mine) return ["human", "You hold", step];
  if (episode.source === "policy") return ["policy", "Policy", step];
  if (episode.source === "script") return ["policy", "Scripted operator", step];
  if (job.kind === "training" && phase.name === "training") return ["nobody", "Between episodes", "The scene is reset, the learner catches up."];
  return ["nobody", phase.name === "ready" ? "Ready" : phase.name === "complete" ? "Complete" : "Waiting", phase.text];
}

function render() {
  const [who, title, detail] = control();
  document.body.dataset.control = who;
  $("who").textContent = title;
  $("detail").textContent = detail;
  $("link").textContent = state ? "connected" : "not connected";
  $("link").classList.toggle("up", Boolean(state));
  const stopped = Boolean(state?.holds.some((hold) => hold.name === "e-stop"));
  $("estop").classList.toggle("release", stopped);
  $("estop").firstChild.textContent = stopped ? "Release stop" : "Stop";
  $("pads").disabled = !state?.mine;
  $("lease").disabled = !state || (Boolean(state.owner) && !state.mine);
  $("lease").firstChild.textContent = state?.mine ? "Give back" : "Take control";
  document.querySelector(".owner").classList.toggle("owned", Boolean(state?.owner));
  if (!state) return;
  $("owner").textContent = state.mine ? "You are in control" : state.owner ? `${state.owner} is in control` : "Nobody is in control";
  $("phase").textContent = state.phase.text;
  actions();
  const pad = hands.gamepadName ? ` Gamepad: ${hands.gamepadName.split("(")[0].trim()}.` : "";
  $("hint").textContent = (state.mine ? "Keys, pads or gamepad move the tool; Shift moves slowly." : "Take control to lead the arm.") + pad;
  if (state.arm) arm(state.arm);
  episodes.show(state.ended, state.mine);
  remarks(state.remarks);
  figures();
  document.querySelectorAll("#cameras .camera").forEach((figure, index) => figure.classList.toggle("stale", Boolean(state.episode.source) && performance.now() - (shownAt[index] ?? performance.now()) > 1500));
}

function figures() {
  if (job.kind === "demo") {
    $("count").textContent = `${state.kept.count}/${state.kept.wanted}`;
    $("count-unit").textContent = "kept";
  } else {
    const done = state.health.env_step ?? 0;
    $("count").textContent = done.toLocaleString("en");
    $("count-unit").textContent = "steps";
  }
  $("force-now").textContent = state.arm ? Math.hypot(...state.arm.force).toFixed(0) : "–";
}

function arm({ force, peak_force, offset, speed, gripper }) {
  const now = Math.hypot(...force), share = Math.max(now, peak_force) / job.force_limit, seconds = performance.now() / 1000;
  $("force").textContent = now.toFixed(1);
  $("force").parentElement.className = `big ${share > 1 ? "over" : share > 0.6 ? "warn" : ""}`;
  forceChart($("force-chart"), forces.map(([time, value]) => [seconds - time, value]), job.force_limit, FORCE_SECONDS);
  workspaceMap($("map"), offset, job.workspace);
  const rows = { "from start": `${offset.map((value) => Math.round(value * 1000) + 0).join("  ")} mm`, speed: `${(speed * 1000).toFixed(0)} mm/s`, "peak force": `${peak_force.toFixed(1)} N`, ...(job.gripper && { gripper: `${(gripper * 1000).toFixed(0)} mm` }) };
  $("facts").replaceChildren(...Object.entries(rows).flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
}

// ---------------------------------------------------------------------- buttons

function wanted() {
  const held = state.holds.some((hold) => hold.name !== "e-stop" && !hold.name.startsWith("device"));
  if (held) return ["resume", ...state.phase.requests.filter((name) => name === "discard")];
  return job.kind === "training" ? ["success", "failure", "reset", "pause"] : [...state.phase.requests, "pause"];
}

function actions() {
  const names = wanted(), mine = state.mine;
  const key = names.join() + mine;
  if (key === shownActions) return;
  shownActions = key;
  const first = names.find((name) => ["start", "resume", "finish"].includes(name));
  $("actions").replaceChildren(
    ...names.map((name) => {
      const button = element("button", LABELS[name]);
      button.append(element("kbd", KEYS[name]));
      button.id = `do-${name}`;
      button.disabled = !mine && name !== "pause";
      button.className = name === first ? "primary wide" : name === "success" ? "good" : ["failure", "discard"].includes(name) ? "bad" : "";
      button.addEventListener("click", () => act(name));
      return button;
    }),
  );
}

const press = (name) => state && wanted().includes(name) && act(name);
const primary = () => ["start", "resume", "finish"].some((name) => wanted().includes(name) && (act(name), true));

$("estop").addEventListener("click", stop);
function stop() {
  if (!state?.holds.some((hold) => hold.name === "e-stop")) return act("e-stop");
  if (state.mine) act("release e-stop");
  else toast("Take control first; only who is in control may release the stop.");
}
$("lease").addEventListener("click", lease);
function lease() {
  if (state) send({ type: "lease", take: !state.mine });
}

for (const name of ["close", "open"]) {
  $(name).addEventListener("pointerdown", () => hands.held.add(name));
  for (const end of ["pointerup", "pointerleave", "pointercancel"]) $(name).addEventListener(end, () => hands.held.delete(name));
}
hands.pad($("pad-xy"), "y", "x");
hands.pad($("pad-z"), null, "z");
hands.pad($("pad-yaw"), "yaw", null);

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !$("door").open) {
    event.preventDefault();
    for (const name of ["help", "replay"]) $(name).close(); // what is read is never in the way of a stop
    if (!event.repeat && !state?.holds.some((hold) => hold.name === "e-stop")) act("e-stop"); // it never releases
    return;
  }
  if (event.target.matches("input:not([type=range])") || document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (state?.mine && hands.key(event, true)) return event.preventDefault();
  if (event.repeat) return;
  const key = event.key.toLowerCase();
  if (key === "t") lease();
  else if (key === "z" && state?.mine) episodes.correct();
  else if (key === "?") $("help").show();
  else if (key === "enter" && !event.target.matches("button")) primary();
  else for (const name of ["success", "failure", "discard", "redo", "reset", "stop", "pause"]) if (KEYS[name].toLowerCase() === key) press(name);
});
// A button pressed by pointer does not keep the focus, or Enter and Space would press it again.
addEventListener("click", (event) => event.detail > 0 && event.target.closest("button")?.blur());
addEventListener("keyup", (event) => hands.key(event, false));

// ------------------------------------------------------------- lists and curves

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

const CURVES = [
  ["Success", (data) => { const rows = data.curve.length > 1 ? data.curve.map((row) => [row.env_step, row.success_rate]) : smooth(data.episode, (row) => Number(row.success && !row.assisted)); return rows; }, [0, 1], "good", (value) => `${(value * 100).toFixed(0)} %`],
  ["Intervention", (data) => smooth(data.episode, (row) => row.intervention_rate), [0, 1], "human", (value) => `${(value * 100).toFixed(0)} %`],
  ["Cycle time", (data) => smooth(data.episode.filter((row) => row.success), (row) => row.cycle_time_s), [0, null], "policy", (value) => `${value.toFixed(1)} s`],
  ["Return", (data) => smooth(data.episode, (row) => row.return), [null, null], "policy", (value) => value.toFixed(2)],
  ["Q", (data) => data.update.map((row) => [row.env_step, row.q_mean]), [null, null], "idle", (value) => value.toFixed(2)],
];

function smooth(rows, value) {
  const means = rollingMean(rows.map(value));
  return rows.map((row, index) => [row.env_step, means[index]]);
}

function curves(data) {
  newest = data;
  if (!$("curves").children.length) {
    for (const [name] of CURVES) {
      const figure = element("div", "", "curve"), head = element("p", name), canvas = element("canvas");
      canvas.setAttribute("height", "58");
      head.append(element("b", "–"));
      figure.append(head, canvas);
      $("curves").append(figure);
    }
  }
  CURVES.forEach(([, points, range, tone, format], index) => {
    const rows = points(data).filter((point) => point[1] !== null), figure = $("curves").children[index];
    figure.querySelector("b").textContent = rows.length ? format(rows.at(-1)[1]) : "–";
    curve(figure.querySelector("canvas"), rows, range, tone);
  });
  const { updates_per_s: rate, utd } = state?.health ?? {};
  $("health").textContent = rate === undefined ? "" : `${rate.toFixed(0)} updates/s, ${utd.toFixed(1)} per step`;
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

for (const [keys, text] of [["W S A D", "in the plane"], ["E Q", "up, down"], ["J L", "turn"], ["I K U O", "tilt"], ["G H", "close, open the gripper"], ["Shift", "slowly"], ["Space", "lead while held, even at rest"], ["T", "take control, give it back"], ["Enter", "start, resume, finish"], ["Y N", "success, failure"], ["Z", "the last episode's verdict was wrong"], ["X R", "discard; redo or reset"], ["B P", "stop here; pause"], ["Esc", "emergency stop"], ["?", "this list"]]) {
  const term = element("dt");
  for (const key of keys.split(" ")) term.append(element("kbd", key));
  $("keys").append(term, element("dd", text));
}
$("help-open").addEventListener("click", () => $("help").show());

function theme(name) {
  document.documentElement.dataset.theme = name;
  if (newest) curves(newest);
}
theme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
$("theme").addEventListener("click", () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", next);
  theme(next);
});

function askWho(text) {
  $("door-token-label").hidden = !text;
  if (text) $("door-text").textContent = text;
  $("door-name").value = sessionStorage.getItem("name") ?? localStorage.getItem("name") ?? "";
  $("door").showModal();
}
$("door").addEventListener("cancel", (event) => event.preventDefault());
$("door-form").addEventListener("submit", () => {
  const name = $("door-name").value.trim() || "operator";
  sessionStorage.setItem("name", name);
  localStorage.setItem("name", name);
  if ($("door-token").value) sessionStorage.setItem("token", $("door-token").value);
  connect();
});
if (sessionStorage.getItem("name")) connect();
else askWho("");
