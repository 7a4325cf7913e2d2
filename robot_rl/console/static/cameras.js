// The live views: one large, which a click or a key chooses, the others, and the scene, which stays the last.

const STALE_MS = 1500;

export class Cameras {
  // shown() is called when all pictures are on the screen, and requests the next ones; alone() shows the large one
  // without the rest of the page, or all again.
  constructor(box, shown, alone) {
    Object.assign(this, { box, shown, alone, chosen: 0, age: null, scene: box.querySelector(".scene") });
    this.clear();
  }

  // The cameras are unknown until the robot is read for the first time.
  clear() {
    this.names = null;
    this.shownAt = [];
  }

  name(names) {
    if (String(names) === String(this.names)) return;
    this.names = names;
    this.box.replaceChildren(...(names.length ? names.map((name, index) => this.view(name, index)) : [none()]), this.scene);
    this.box.classList.toggle("filmed", names.length > 0);
    this.box.style.setProperty("--rows", `${"auto ".repeat(Math.max(0, names.length - 1))}1fr`);
    this.choose(Math.min(this.chosen, Math.max(0, names.length - 1)));
    this.shown();
  }

  view(name, index) {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption"), image = document.createElement("img"), button = document.createElement("button");
    figure.className = "camera";
    image.alt = `live view ${name}`;
    button.textContent = name;
    if (index < 9) button.append(Object.assign(document.createElement("kbd"), { textContent: index + 1 }));
    button.setAttribute("aria-label", `${name}, large`);
    figure.addEventListener("click", () => (this.chosen === index ? this.alone() : this.choose(index)));
    image.addEventListener("load", () => (figure.style.aspectRatio = `${image.naturalWidth} / ${image.naturalHeight}`));
    caption.append(button);
    figure.append(image, caption);
    return figure;
  }

  choose(index) {
    if (!this.names?.[index]) return;
    this.chosen = index;
    this.box.querySelectorAll(".camera").forEach((figure, at) => {
      figure.classList.toggle("chosen", at === index);
      figure.querySelector("button").setAttribute("aria-pressed", at === index);
    });
  }

  get figure() {
    return this.box.querySelector(".chosen");
  }

  // The large one, if any.
  get camera() {
    return this.names?.[this.chosen] ?? "";
  }

  // A message of the server: number of the camera (1 byte), age of the picture in ms (2 bytes, big-endian), JPEG.
  // oneWay is how long the message took, in ms.
  async show(data, oneWay) {
    const header = new DataView(data, 0, 3), number = header.getUint8(0), came = performance.now();
    const image = this.box.children[number]?.querySelector("img");
    if (!image) return;
    const before = image.src;
    image.src = URL.createObjectURL(new Blob([new Uint8Array(data, 3)], { type: "image/jpeg" }));
    this.shownAt[number] = came;
    await image.decode().catch(() => {});
    if (before) URL.revokeObjectURL(before);
    if (number === this.chosen) this.age = header.getUint16(1) + oneWay + performance.now() - came;
    if (number === this.names.length - 1) this.shown();
  }

  // Marks the views that show nothing new although they should.
  mark(running) {
    [...this.box.querySelectorAll(".camera")].forEach((figure, index) => figure.classList.toggle("stale", running && performance.now() - (this.shownAt[index] ?? performance.now()) > STALE_MS));
  }
}

function none() {
  return Object.assign(document.createElement("p"), { className: "no-camera", textContent: "This robot shows no camera." });
}
