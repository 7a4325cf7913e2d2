// One recorded episode: its course, its frames where there are any, and what it was in hindsight.

import { episodeChart } from "./charts.js";

const $ = (id) => document.getElementById(id);

export class Replay {
  constructor(headers, label) {
    this.headers = headers;
    this.at = $("replay-at");
    this.at.addEventListener("input", () => this.show());
    $("replay-play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    $("replay-success").addEventListener("click", () => label(this.episode.id, true));
    $("replay-failure").addEventListener("click", () => label(this.episode.id, false));
    $("replay").addEventListener("close", () => this.pause());
    this.wanted = 0;
  }

  async open(id) {
    const answer = await fetch(`/episodes/${encodeURIComponent(id)}`, { headers: this.headers() });
    if (!answer.ok) throw new Error(await answer.text());
    this.episode = await answer.json();
    this.at.max = this.episode.steps;
    this.at.value = 0;
    $("replay-title").textContent = id;
    $("replay-cameras").replaceChildren(
      ...this.episode.cameras.map((name) => {
        const figure = document.createElement("figure"), caption = document.createElement("figcaption");
        figure.className = "camera";
        caption.textContent = name;
        figure.append(document.createElement("img"), caption);
        return figure;
      }),
    );
    this.describe();
    if (!$("replay").open) $("replay").show();
    this.show();
  }

  // Its outcome, by whom; the newest label counts.
  describe() {
    const { metadata, judge, label } = this.episode, outcome = (success) => (success ? "success" : "no success");
    $("replay-judged").textContent = `recorded: ${metadata.cut ? `cut: ${metadata.cut}` : `${outcome(metadata.success)}, by ${judge}`}` + (label ? ` · ${label.who}: ${outcome(label.success)}` : "");
    $("replay-success").setAttribute("aria-pressed", label?.success === true);
    $("replay-failure").setAttribute("aria-pressed", label?.success === false);
  }

  labelled(id, success) {
    if (this.episode?.id !== id) return;
    this.episode.label = { success, who: "you" };
    this.describe();
  }

  play() {
    const { seconds, steps } = this.episode;
    const period = steps ? ((seconds[steps] - seconds[0]) / steps) * 1000 : 100;
    if (Number(this.at.value) >= steps) this.at.value = 0;
    $("replay-play").textContent = "Pause";
    this.timer = setInterval(() => {
      this.at.value = Number(this.at.value) + 1;
      this.show();
      if (Number(this.at.value) >= steps) this.pause();
    }, period);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    $("replay-play").textContent = "Play";
  }

  async show() {
    const { episode } = this, at = Number(this.at.value), step = Math.min(at, episode.steps - 1);
    episodeChart($("replay-chart"), episode, at);
    const who = { policy: "policy", human: "person", script: "scripted operator", hold: "held" }[episode.source[step]];
    $("replay-facts").textContent = `step ${at} of ${episode.steps}, ${episode.seconds[at].toFixed(1)} s, ${who}`;
    const mine = ++this.wanted;
    await Promise.all(
      episode.cameras.map(async (camera, index) => {
        const answer = await fetch(`/episodes/${encodeURIComponent(episode.id)}/${camera}/${at}.jpg`, { headers: this.headers() });
        const picture = await answer.blob();
        if (mine !== this.wanted) return;
        const image = $("replay-cameras").children[index].firstChild;
        URL.revokeObjectURL(image.src);
        image.src = URL.createObjectURL(picture);
      }),
    );
  }
}
