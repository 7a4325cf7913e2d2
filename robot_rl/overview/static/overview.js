// The overview: all robots, and one button that stops them all.

import { Door, hello } from "/console/door.js";
import { status } from "/console/status.js";

const $ = (id) => document.getElementById(id);
const cards = new Map(); // by name of the robot
const SILENCE_MS = 1500; // the overview sends its state four times a second
let socket, robots = [], heardAt = 0, unsent = "";
const heard = () => socket?.readyState === WebSocket.OPEN && performance.now() - heardAt < SILENCE_MS;
const send = (message) => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));

// ------------------------------------------------------------------ connection

function connect() {
  const mine = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
  socket = mine;
  heardAt = performance.now();
  mine.binaryType = "arraybuffer";
  mine.addEventListener("open", () => send(hello()));
  mine.addEventListener("message", ({ data }) => mine === socket && (typeof data === "string" ? receive(JSON.parse(data)) : picture(data)));
  mine.addEventListener("close", (event) => {
    if (mine !== socket) return;
    socket = null;
    if (event.code === 4401) return door.ask("That token is not the right one.");
    lost();
  });
}

// A connection may end without a word, e.g. where a network is cut: then nothing comes any more.
setInterval(() => {
  if (door.open || (socket && performance.now() - heardAt < SILENCE_MS)) return;
  if (socket) lost();
  socket?.close();
  connect();
}, 500);

function receive(message) {
  if (message.type !== "robots") return;
  heardAt = performance.now();
  robots = message.robots;
  if (unsent) send({ type: "do", what: unsent });
  unsent = "";
  for (const robot of robots) show(card(robot.name), robot);
  summarize();
}

function lost() {
  document.body.dataset.control = "held";
  write($("summary"), "No connection to the overview.");
  write($("missing"), unsent ? "The stop is not delivered. Press the emergency stops at the robots. It is sent as soon as there is a connection." : "Stop does not work from here.");
  $("missing").hidden = false;
  for (const { root } of cards.values()) root.classList.add("away");
}

// ------------------------------------------------------------------ what it shows

const write = (element, text) => element.textContent !== text && (element.textContent = text);

function card(name) {
  if (!cards.has(name)) {
    const root = $("robot").content.firstElementChild.cloneNode(true);
    const find = (selector) => root.querySelector(selector);
    cards.set(name, { root, image: find("img"), none: find(".no-view"), who: find(".who"), detail: find(".detail"), bar: find("progress"), facts: find("dl"), remark: find(".remark"), link: find("a"), name: find(".name"), view: find(".view") });
    $("robots").append(root);
  }
  return cards.get(name);
}

function show(shown, robot) {
  const { connected, state, job } = robot;
  const [control, title, detail] = connected ? status({ ...state, mine: false }, job) : ["nobody", "Away", robot.why];
  shown.root.dataset.control = control;
  shown.root.classList.toggle("away", !connected);
  shown.view.hidden = !connected && shown.image.hidden;
  write(shown.name, job ? `${robot.name}: ${job.task}` : robot.name);
  write(shown.who, title);
  write(shown.detail, connected ? detail : away(robot));
  shown.link.href = robot.page;
  shown.link.setAttribute("aria-label", `Console of ${robot.name}`);
  shown.image.alt = `What the first camera of ${robot.name} sees`;
  const done = state?.health.env_step ?? 0;
  shown.bar.hidden = !job?.env_steps;
  shown.bar.max = job?.env_steps || 1;
  shown.bar.value = done;
  shown.bar.setAttribute("aria-label", `Steps of ${robot.name}`);
  table(shown.facts, state ? rows(robot, done) : []);
  write(shown.remark, robot.remark);
}

const away = (robot) => (robot.age === null ? robot.why : `${robot.why}. Last heard of ${Math.round(robot.age)} s ago.`);

function rows({ state, job, recent }, done) {
  const { person, success_alone: alone, updates_per_s: updates } = state.health;
  const found = [];
  if (job.env_steps) found.push(["Steps", `${done} of ${job.env_steps}`]);
  if (job.kind === "demo") found.push(["Demonstrations", `${state.kept.count} of ${state.kept.wanted}`]);
  if (recent[1]) found.push([`Success, last ${recent[1]}`, percent(recent[0] / recent[1])]);
  if (typeof alone === "number") found.push(["Without help", percent(alone)]);
  if (person) found.push(["Help of a person", minutes(person.seconds)]);
  if (typeof updates === "number") found.push(["Updates", `${updates.toFixed(0)} a second`]);
  return found;
}

const percent = (share) => `${Math.round(100 * share)} %`;
const minutes = (seconds) => `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;

function table(list, found) {
  const text = JSON.stringify(found);
  if (list.dataset.shown === text) return;
  list.dataset.shown = text;
  list.replaceChildren(...found.flat().map((words, place) => Object.assign(document.createElement(place % 2 ? "dd" : "dt"), { textContent: words })));
}

function picture(data) {
  const robot = robots[new DataView(data).getUint8(0)];
  if (!robot) return;
  const { image, none } = card(robot.name);
  const before = image.src;
  image.src = URL.createObjectURL(new Blob([data.slice(3)], { type: "image/jpeg" }));
  if (before) URL.revokeObjectURL(before);
  image.hidden = false;
  none.hidden = true;
}

const FEW = 5;
const names = (some) => (some.length > FEW ? `${some.length} robots` : some.map((robot) => robot.name).join(", "));

function summarize() {
  const away = robots.filter((robot) => !robot.connected);
  const held = robots.filter((robot) => robot.connected && robot.state.holds.length);
  const missing = robots.filter((robot) => robot.stop_wanted);
  document.body.dataset.control = missing.length || held.length ? "held" : away.length ? "nobody" : "policy";
  const parts = [`${robots.length - away.length} of ${robots.length} connected`];
  if (held.length) parts.push(`held: ${names(held)}`);
  if (away.length) parts.push(`away: ${names(away)}`);
  write($("summary"), parts.join(" · "));
  write($("missing"), missing.length ? `Not known to be stopped: ${names(missing)}. Go there and press its emergency stop. It is stopped from here as soon as it answers.` : "");
  $("missing").hidden = $("give-up").hidden = !missing.length;
}

// ------------------------------------------------------------------ what it requests

function stopAll() {
  if (heard()) return send({ type: "do", what: "stop all" });
  unsent = "stop all";
  lost();
}

$("stop").addEventListener("click", stopAll);
$("give-up").addEventListener("click", () => {
  const missing = robots.filter((robot) => robot.stop_wanted).map((robot) => robot.name).join(", ");
  if (confirm(`Shall ${missing} no longer be stopped when it answers?`)) send({ type: "do", what: "give up" });
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !door.open) stopAll();
});

const door = new Door(connect);
door.begin();
