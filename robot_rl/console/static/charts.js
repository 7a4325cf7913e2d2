// Small charts on canvases, in the colours of the page.

export const colour = (name) => getComputedStyle(document.body).getPropertyValue(`--${name}`).trim();

// A canvas made ready at the screen's resolution: its context, width and height in CSS pixels.
export function ready(canvas) {
  canvas.dataset.height ??= canvas.getAttribute("height"); // the attribute changes with the resolution
  const width = canvas.clientWidth, height = Number(canvas.dataset.height);
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  return [context, width, height];
}

function path(context, points) {
  context.beginPath();
  points.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
}

// Force over time against its limit. samples: [seconds ago, newtons, who].
export function forceChart(canvas, samples, limit, seconds) {
  const [context, width, height] = ready(canvas);
  const top = Math.max(limit * 1.12, ...samples.map((sample) => sample[1])), floor = height - 2;
  const x = (ago) => width * (1 - ago / seconds), y = (force) => floor - (floor - 6) * (force / top);
  context.fillStyle = colour("held");
  context.globalAlpha = 0.09;
  context.fillRect(0, 0, width, y(limit));
  context.globalAlpha = 1;
  context.strokeStyle = colour("held");
  context.setLineDash([5, 5]);
  path(context, [[0, y(limit)], [width, y(limit)]]);
  context.stroke();
  context.setLineDash([]);
  context.fillStyle = colour("held");
  context.fillText(`limit ${limit} N`, 8, y(limit) - 5);
  context.strokeStyle = colour("line");
  path(context, [[0, floor], [width, floor]]);
  context.stroke();
  context.lineWidth = 2.2;
  context.lineJoin = "round";
  context.strokeStyle = colour("ink");
  path(context, samples.map(([ago, force]) => [x(ago), y(force)]));
  context.stroke();
  context.lineWidth = 1;
}

// A line over env steps. points: [step, value]; range: [low, high], either may be null.
export function curve(canvas, points, range, tone) {
  const [context, width, height] = ready(canvas), floor = height - 3;
  context.strokeStyle = colour("line");
  path(context, [[0, floor], [width, floor]]);
  context.stroke();
  if (points.length < 2) return;
  const values = points.map((point) => point[1]);
  const low = range[0] ?? Math.min(...values), high = range[1] ?? Math.max(...values), span = high - low || 1;
  const first = points[0][0], last = points[points.length - 1][0];
  const place = ([step, value]) => [(width * (step - first)) / (last - first || 1), floor - ((floor - 4) * (value - low)) / span];
  context.strokeStyle = colour(tone);
  context.lineWidth = 2;
  context.lineJoin = "round";
  path(context, points.map(place));
  context.stroke();
  context.lineTo(width, floor);
  context.lineTo(0, floor);
  context.globalAlpha = 0.1;
  context.fillStyle = colour(tone);
  context.fill();
  context.globalAlpha = 1;
  context.lineWidth = 1;
}

export function rollingMean(values, window = 20) {
  return values.map((_, index) => {
    const part = values.slice(Math.max(0, index - window + 1), index + 1);
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

// An episode: who led as a ribbon, force, deflection, reward, and where we are.
export function episodeChart(canvas, episode, at) {
  const [context, width, height] = ready(canvas), steps = episode.steps, ribbon = 16;
  const x = (step) => (width * step) / steps;
  episode.source.forEach((who, step) => {
    context.fillStyle = colour({ policy: "policy", human: "human", script: "good", hold: "idle" }[who]);
    context.fillRect(x(step), height - ribbon, Math.ceil(width / steps), ribbon);
    context.globalAlpha = 0.16;
    context.fillRect(x(step), height - ribbon - 6 - 46 * episode.action[step], Math.ceil(width / steps) - 1, 46 * episode.action[step]);
    context.globalAlpha = 1;
    if (episode.reward[step] > 0) context.fillText(`reward ${episode.reward[step]}`, Math.max(0, x(step) - 60), 14);
  });
  const top = Math.max(5, ...episode.force);
  context.strokeStyle = colour("ink");
  context.lineWidth = 1.8;
  path(context, episode.force.map((force, step) => [x(step), height - ribbon - 6 - (height - ribbon - 30) * (force / top)]));
  context.stroke();
  context.fillStyle = colour("soft");
  context.fillText(`force, up to ${top.toFixed(1)} N`, 2, 26);
  context.fillStyle = colour("held");
  context.fillRect(x(at) - 1, 0, 2, height);
}
