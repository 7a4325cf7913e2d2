// What is where in a picture: the ways in which the keys move the tool, and the axes of the robot's base.

const AXES = ["x", "y", ""], COLOURS = ["#ff6b6b", "#5ddb7a", "#6cb2ff"]; // as everywhere; z is where "up" is
const SIZE = 112, REACH = 37, NEAR = 0.14, GROUND = "#10161a"; // [px]; an axis shorter than this share points at the viewer

export class Compass {
  constructor(keys) {
    this.keys = keys;
    this.canvas = Object.assign(document.createElement("canvas"), { className: "compass" });
    this.canvas.setAttribute("role", "img");
    this.canvas.width = this.canvas.height = 2 * SIZE;
    this.drawn = "";
  }

  // Puts it on a picture. view: of its camera, as the server sends it, or undefined; heading: which way "ahead" is [rad].
  show(figure, view, heading) {
    const key = JSON.stringify([view, heading, ["ahead", "back", "left", "right", "up", "down"].map((action) => this.keys.label(action))]);
    if (!figure || !view) return this.canvas.remove();
    if (this.canvas.parentElement !== figure) figure.append(this.canvas);
    if (key === this.drawn) return;
    this.drawn = key;
    this.canvas.setAttribute("aria-label", heading === 0 ? "keys move along the axes of the robot's base" : "keys move as the picture shows it");
    this.draw(view.axes, heading);
  }

  draw([x, y, z], heading) {
    const context = this.canvas.getContext("2d"), cosine = Math.cos(heading), sine = Math.sin(heading);
    const mix = (a, b) => [a * x[0] + b * y[0], a * x[1] + b * y[1]];
    context.setTransform(2, 0, 0, 2, 0, 0);
    context.clearRect(0, 0, SIZE, SIZE);
    context.fillStyle = GROUND;
    context.beginPath();
    context.arc(SIZE / 2, SIZE / 2, SIZE / 2 - 1, 0, 7);
    context.fill();
    context.translate(SIZE / 2, SIZE / 2);
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineCap = "round";
    [x, y, z].forEach((axis, index) => this.arrow(context, axis, REACH * 0.6, COLOURS[index], 3, AXES[index], "500 11px system-ui", 8));
    const ways = { ahead: mix(cosine, sine), back: mix(-cosine, -sine), left: mix(-sine, cosine), right: mix(sine, -cosine), up: z, down: z.map((value) => -value) };
    for (const [action, way] of Object.entries(ways)) this.arrow(context, way, REACH, "#ffffff", 0, this.keys.label(action), "700 13px system-ui", 10);
  }

  // An arrow from the middle with a letter at its end; without a width only the letter. What points at the viewer is left out.
  arrow(context, [right, up], reach, colour, width, label, font, beyond) {
    const length = Math.hypot(right, up);
    if (length < NEAR) return;
    context.strokeStyle = colour;
    if (width) {
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(0, 0);
      context.lineTo(reach * right, -reach * up);
      context.stroke();
    }
    context.font = font;
    const end = reach * length + beyond; // a letter has room also at the end of a short one
    const text = [label.slice(0, 3), (end * right) / length, (-end * up) / length];
    context.strokeStyle = GROUND; // so that it is read where it crosses an axis
    context.lineWidth = 5;
    context.strokeText(...text);
    context.fillStyle = colour;
    context.fillText(...text);
  }
}
