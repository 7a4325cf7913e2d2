// Curves over a training, and over the episode that runs.

import { curve, rollingMean } from "./charts.js";

const percent = (value) => `${(value * 100).toFixed(0)} %`, number = (value) => value.toFixed(2);

// Name, points of the server's data, range (null: as it comes), colour, how a value is written, and whether it is shown
// before there is one.
const CURVES = [
  ["Success", success, [0, 1], "good", percent, true],
  ["Intervention", (data) => smooth(data.episode, (row) => row.intervention_rate), [0, 1], "human", percent, true],
  ["Cycle time", (data) => smooth(data.episode.filter((row) => row.success), (row) => row.cycle_time_s), [0, null], "policy", (value) => `${value.toFixed(1)} s`, true],
  ["Return", (data) => smooth(data.episode, (row) => row.return), [null, null], "policy", number, true],
  ["Value (Q)", (data) => data.update.map((row) => [row.env_step, row.q_mean]), [null, null], "idle", number, true],
  ["Classifier at the end", (data) => smooth(known(data.episode, "classifier_probability"), (row) => row.classifier_probability), [0, 1], "good", percent, false],
  ["Labels", (data) => smooth(known(data.label, "value"), (row) => row.value), [0, 1], "human", percent, false],
];

function success({ curve: points, episode }) {
  return points.length > 1 ? points.map((row) => [row.env_step, row.success_rate]) : smooth(episode, (row) => Number(row.success && !row.assisted));
}

const known = (rows, name) => rows.filter((row) => typeof row[name] === "number");

function smooth(rows, value) {
  const means = rollingMean(rows.map(value));
  return rows.map((row, index) => [row.env_step, means[index]]);
}

// Draws a named curve into a box, where there is one or is to be one.
function draw(box, [name, rows, range, tone, format, always]) {
  let figure = [...box.children].find((one) => one.dataset.name === name);
  if (!figure) {
    if (!rows.length && !always) return;
    figure = Object.assign(document.createElement("div"), { className: "curve" });
    figure.dataset.name = name;
    const head = document.createElement("p"), canvas = document.createElement("canvas");
    canvas.setAttribute("height", "58");
    head.append(name, document.createElement("b"));
    figure.append(head, canvas);
    box.append(figure);
  }
  figure.querySelector("b").textContent = rows.length ? format(rows.at(-1)[1]) : "–";
  curve(figure.querySelector("canvas"), rows, range, tone);
}

// data: the server's message "curves".
export function trainingCurves(box, data) {
  for (const [name, points, ...how] of CURVES) draw(box, [name, points(data).filter((point) => point[1] !== null), ...how]);
}

// What is measured at each step of the running episode: what the classifier finds, and what the critics expect.
const MEASURES = { classifier: ["Success, by the classifier", [0, 1], "good", percent], value: ["Value, by the critics", [null, null], "policy", number] };

export class Measures {
  constructor(card, box) {
    Object.assign(this, { card, box, id: null, rows: {} });
  }

  show({ id, step, measures }) {
    if (id !== this.id) [this.id, this.rows] = [id, {}];
    for (const [name, value] of Object.entries(measures)) {
      if (!(name in MEASURES)) continue;
      const rows = (this.rows[name] ??= []);
      if (rows.at(-1)?.[0] === step) continue;
      rows.push([step, value]);
      this.card.hidden = false; // before it is drawn: what is hidden has no size
      const [title, ...how] = MEASURES[name];
      draw(this.box, [title, rows, ...how, false]);
    }
  }
}
