// Sounds, for who looks at the arm and not at the page: one for a stop, one when a person is wanted.

import { emergency, wanted } from "./status.js";

// Tones as [frequency in Hz, start in s, length in s]. A stop falls, a request rises.
const STOP = [[660, 0, 0.16], [495, 0.18, 0.16], [330, 0.36, 0.34]];
const REQUEST = [[660, 0, 0.12], [880, 0.16, 0.22]];
const LOUDNESS = 0.25;

export class Sounds {
  constructor(button) {
    this.button = button;
    this.on = localStorage.getItem("sound") !== "no";
    this.before = null; // nothing sounds for what was so when the page was opened
    button.addEventListener("click", () => this.toggle());
    // Browsers play nothing before the first key or click.
    for (const name of ["pointerdown", "keydown"]) addEventListener(name, () => this.wake(), { capture: true });
    this.label();
  }

  wake() {
    this.context ??= new AudioContext();
    if (this.context.state === "suspended") this.context.resume();
  }

  toggle() {
    this.on = !this.on;
    localStorage.setItem("sound", this.on ? "yes" : "no");
    this.label();
    if (this.on) this.play(REQUEST);
  }

  label() {
    this.button.textContent = this.on ? "Sound on" : "Sound off";
  }

  // The newest state of the console; null without a connection.
  follow(state, job) {
    const now = { stopped: Boolean(state && emergency(state)), wanted: wanted(state, job) }, { before } = this;
    this.before = now;
    if (!before) return;
    if (now.stopped && !before.stopped) this.play(STOP);
    else if (now.wanted && now.wanted !== before.wanted && !now.stopped) this.play(REQUEST);
  }

  play(tones) {
    if (!this.on || !this.context) return;
    for (const [frequency, start, length] of tones) {
      const tone = new OscillatorNode(this.context, { type: "triangle", frequency }), volume = new GainNode(this.context, { gain: 0 });
      const from = this.context.currentTime + start;
      volume.gain.setValueAtTime(0, from);
      volume.gain.linearRampToValueAtTime(LOUDNESS, from + 0.01);
      volume.gain.linearRampToValueAtTime(0, from + length);
      tone.connect(volume).connect(this.context.destination);
      tone.start(from);
      tone.stop(from + length);
    }
  }
}
