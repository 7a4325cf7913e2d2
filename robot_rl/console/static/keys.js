// The keyboard: which key does what, by its place (KeyboardEvent.code), as everybody can change it.

// Action: place of its key, and what it does. The emergency stop is no entry: it is Esc, always.
const ACTIONS = {
  ahead: ["KeyW", "move ahead"], back: ["KeyS", "move back"], left: ["KeyA", "move left"], right: ["KeyD", "move right"],
  up: ["KeyE", "move up"], down: ["KeyQ", "move down"],
  turnLeft: ["KeyJ", "turn left"], turnRight: ["KeyL", "turn right"],
  tiltAhead: ["KeyI", "tilt ahead"], tiltBack: ["KeyK", "tilt back"], tiltLeft: ["KeyU", "tilt left"], tiltRight: ["KeyO", "tilt right"],
  close: ["KeyG", "close the gripper"], open: ["KeyH", "open the gripper"],
  nextArm: ["KeyM", "lead the next one of several arms"],
  slow: ["ShiftLeft", "move slowly"], take: ["Space", "lead while held, even at rest"],
  control: ["KeyT", "take control, give it back"], primary: ["Enter", "start, resume, finish"],
  success: ["KeyY", "success"], failure: ["KeyN", "failure"], correct: ["KeyZ", "the last episode's verdict was wrong"],
  discard: ["KeyX", "discard"], redo: ["KeyR", "redo or reset"], stop: ["KeyB", "stop here"], pause: ["KeyP", "pause"],
  cinema: ["KeyF", "only the large camera, and back"], follow: ["KeyV", "keys follow the picture, or the robot's base"],
};
const STORED = "keys", STOP = "Escape";
const NAMES = { Space: "Space", Enter: "Enter", ShiftLeft: "Shift", ShiftRight: "Shift right", ControlLeft: "Ctrl", Backquote: "`", Minus: "-", Equal: "=", BracketLeft: "[", BracketRight: "]", Semicolon: ";", Quote: "'", Backslash: "\\", Comma: ",", Period: ".", Slash: "/", ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" };
const ALIKE = { ShiftRight: "ShiftLeft", NumpadEnter: "Enter" }; // unless somebody gives it an action of its own

export class Keys {
  // changed() is called when labels or actions are others.
  constructor(changed) {
    this.changed = changed;
    this.layout = new Map();
    this.codes = Object.fromEntries(Object.entries(ACTIONS).map(([action, [code]]) => [action, code]));
    try {
      for (const [action, code] of Object.entries(JSON.parse(localStorage.getItem(STORED) ?? "{}"))) if (action in ACTIONS) this.codes[action] = String(code);
    } catch {
      localStorage.removeItem(STORED); // what is no JSON is not ours
    }
    // What is printed on the keys, where the browser knows it (Keyboard Map; in a secure context).
    navigator.keyboard?.getLayoutMap?.().then((layout) => {
      this.layout = layout;
      changed();
    }, () => {});
  }

  // The action of a key, or undefined.
  action({ code }) {
    const found = (place) => Object.keys(this.codes).find((action) => this.codes[action] === place);
    return found(code) ?? (ALIKE[code] && found(ALIKE[code]));
  }

  label(action) {
    const code = this.codes[action], printed = this.layout.get(code);
    return NAMES[code] ?? (printed ? printed.toUpperCase() : code.replace(/^(Key|Digit)/, ""));
  }

  // Gives an action another key; the action that had it gets the old one. False if the key cannot be given.
  give(action, code) {
    if (code === STOP || !code || /^(Digit|Meta|Alt|Tab)/.test(code)) return false;
    const other = Object.keys(this.codes).find((name) => this.codes[name] === code);
    if (other) this.codes[other] = this.codes[action];
    this.codes[action] = code;
    this.keep();
    return true;
  }

  reset() {
    for (const action in ACTIONS) this.codes[action] = ACTIONS[action][0];
    this.keep();
  }

  keep() {
    const own = Object.entries(this.codes).filter(([action, code]) => code !== ACTIONS[action][0]);
    localStorage.setItem(STORED, JSON.stringify(Object.fromEntries(own)));
    this.changed();
  }

  get rows() {
    return Object.entries(ACTIONS).map(([action, [, does]]) => [action, does]);
  }
}

// The dialog in which keys are looked up and changed.
export class KeyDialog {
  constructor(dialog, keys) {
    Object.assign(this, { dialog, keys, waiting: null });
    this.list = dialog.querySelector("#keys");
    this.text = dialog.querySelector("#keys-text");
    dialog.querySelector("#keys-reset").addEventListener("click", () => keys.reset());
    dialog.addEventListener("close", () => this.wait(null));
    dialog.addEventListener("keydown", (event) => this.take(event), true);
  }

  show() {
    this.draw();
    this.dialog.show();
  }

  draw() {
    this.list.replaceChildren(
      ...this.keys.rows.map(([action, does]) => {
        const button = Object.assign(document.createElement("button"), { type: "button", id: `key-${action}`, textContent: this.waiting === action ? "…" : this.keys.label(action) });
        button.setAttribute("aria-label", `${does}: ${this.keys.label(action)}`);
        button.addEventListener("click", () => this.wait(action));
        const row = document.createElement("li");
        row.append(button, does);
        return row;
      }),
    );
  }

  wait(action) {
    this.waiting = action;
    this.text.textContent = action ? "Press the new key, or Esc for the emergency stop." : "Click a key to change it. Keys count by their place, on every layout. Esc is always the emergency stop.";
    this.draw();
    if (action) this.dialog.querySelector(`#key-${action}`).focus();
  }

  take(event) {
    if (!this.waiting || event.code === STOP) return;
    event.preventDefault();
    event.stopPropagation();
    const action = this.waiting;
    if (!this.keys.give(action, event.code)) return (this.text.textContent = "That key cannot be changed; press another one.");
    this.wait(null);
    this.dialog.querySelector(`#key-${action}`).focus();
  }
}
