// How late the page is: what it shows, and what it sends.

const PERIOD_MS = 1000;

export class Delay {
  // ping(at) sends a message that the server answers at once with the same time.
  constructor(ping) {
    this.trip = null; // of the newest message and its answer [ms]
    setInterval(() => ping(performance.now()), PERIOD_MS);
  }

  answered(at) {
    this.trip = performance.now() - at;
  }

  get oneWay() {
    return (this.trip ?? 0) / 2;
  }

  // age: of the large picture, from when the robot's computer read it until it was shown [ms]; null without one.
  text(age) {
    const parts = [];
    if (age !== null) parts.push(`picture ${age.toFixed(0)} ms`);
    if (this.trip !== null) parts.push(`command ${this.oneWay.toFixed(0)} ms`);
    return parts.join(", ");
  }
}
