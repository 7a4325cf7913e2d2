// The last episodes: what became of each, and what it was in hindsight.

const VERDICT = { true: "a success", false: "a failure" };

export class Episodes {
  // open(id) replays an episode; label(id, success) labels it.
  constructor(list, tally, open, label) {
    Object.assign(this, { list, tally, open, label });
    this.shown = null;
    this.rows = [];
  }

  show(rows, mine) {
    const key = JSON.stringify([rows.map((row) => [row.id, row.label]), mine]);
    if (key === this.shown) return;
    [this.shown, this.rows] = [key, rows];
    this.tally.textContent = tally(rows);
    this.list.replaceChildren(...(rows.length ? [...rows].reverse().map((row) => this.row(row, mine)) : [made("li", "None yet.", "empty")]));
  }

  // The verdict on the newest episode was wrong.
  correct() {
    const newest = this.rows.at(-1);
    if (newest) this.label(newest.id, !succeeded(newest));
  }

  row(row, mine) {
    const item = made("li", "", "episode"), texts = made("div"), success = succeeded(row);
    const mark = made("span", success ? "✓" : row.cut && !row.label ? "–" : "✕", `mark ${success ? "success" : row.cut && !row.label ? "" : "failure"}`);
    texts.append(made("p", row.id), made("p", course(row)));
    if (row.label) texts.append(made("p", `${row.label.who}: it was ${VERDICT[row.label.success]}`, "label"));
    const open = made("button", "Replay");
    open.addEventListener("click", () => this.open(row.id));
    const other = made("button", success ? "→ ✕" : "→ ✓", `correct ${success ? "bad" : "good"}`);
    other.title = `It was ${VERDICT[!success]}`;
    other.setAttribute("aria-label", `${row.id} was ${VERDICT[!success]}`);
    other.disabled = !mine;
    other.addEventListener("click", () => this.label(row.id, !success));
    item.append(mark, texts, other, open);
    return item;
  }
}

const succeeded = (row) => (row.label ? row.label.success : row.success);

// How often the policy succeeded; demonstrations are none of its successes.
function tally(rows) {
  const shown = rows.filter((row) => row.demonstration), own = rows.filter((row) => !row.demonstration);
  const won = (some) => some.filter(succeeded).length, parts = [];
  if (own.length) parts.push(`${won(own)} of ${own.length} successful`);
  if (shown.length) parts.push(`${shown.length} demonstration${shown.length > 1 ? "s" : ""}`);
  if (shown.length && !own.length) parts.push(`${won(shown)} successful`);
  return parts.join(", ");
}

// What happened, as a sentence.
function course(row) {
  const judge = row.judge === "task" ? "" : row.judge === "operator" ? " by hand" : ` by ${row.judge}`;
  const how = row.cut ? `cut: ${row.cut}` : row.success ? `success${judge}` : row.failure === "operator" ? "failure by hand" : row.failure ?? "time limit";
  const over = row.overruled ? `, ${row.overruled} overruled` : "";
  const led = row.led === row.steps || !row.takeovers ? "" : `, ${row.takeovers} take-over${row.takeovers > 1 ? "s" : ""}`;
  const force = row.force_peak === null ? "" : `, ${row.force_peak.toFixed(0)} N`;
  return `${how}${over}, ${row.seconds.toFixed(1)} s${led}${force}`;
}

function made(name, text = "", className = "") {
  const element = document.createElement(name);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}
