// What the page says about who is in control, and about what its reader can do now.

export const emergency = (state) => state.holds.some((hold) => hold.name === "e-stop");

// Who is in control ("nobody", "policy", "human", "held"), as a title and in detail.
export function status(state, job) {
  if (!state) return ["nobody", "No connection", "Trying again. The arm holds where it is if you were leading it."];
  const { holds, episode, phase, mine, owner } = state;
  if (emergency(state)) return ["held", "Emergency stop", holds[0].reason];
  if (holds.length) return ["held", "Held", holds.map((hold) => hold.reason).join(" · ")];
  if (state.question) return ["human", "Success?", mine ? state.question : `${owner ?? "Whoever takes control"} is asked. ${state.question}`];
  if (state.call) return ["human", "Help is wanted", state.call];
  if (phase.name === "finished") return ["nobody", "Finished", phase.text];
  const step = episode.source ? `${episode.id}, step ${episode.step} of ${job.max_steps}` : phase.text;
  if (phase.name === "recording" || episode.source === "human") return ["human", mine ? "You lead" : `${owner ?? "A person"} leads`, step];
  if (episode.source === "hold" && mine) return ["human", "You hold", step];
  if (episode.source === "policy") return ["policy", "Policy", step];
  if (episode.source === "script") return ["policy", "Scripted operator", step];
  if (job.kind === "training" && phase.name === "training") return ["nobody", "Between episodes", job.turns ? `The arm clears up; next is ${job.task}.` : "The scene is reset, the learner catches up."];
  const titles = { ready: "Ready", complete: "Complete", evaluating: "Evaluating" };
  return ["nobody", titles[phase.name] ?? "Waiting", phase.text];
}

// For what a person is wanted now; empty if for nothing. A pause is somebody's wish, and so is the wait of a demonstration.
export function wanted(state, job) {
  if (!state) return job ? "connection" : "";
  const held = state.holds.find((hold) => hold.name !== "e-stop" && hold.name !== "pause");
  if (held) return held.name;
  if (state.question) return "question";
  if (state.call) return "call";
  return job?.kind === "robot" && state.phase.requests.includes("start") ? "start" : "";
}

// What there is to do: while the arm is held, how it is released; otherwise what the job says.
export function task(state) {
  if (!state.holds.length) return state.phase.text;
  const stop = emergency(state);
  if (state.mine) return stop ? "Nothing moves. First release the stop, then press Resume." : "Nothing moves until you press Resume.";
  return `Nothing moves. ${state.owner ?? "Whoever takes control"} can ${stop ? "release the stop" : "resume"}.`;
}

// How the reader moves the arm, or why they cannot.
export function hint(state) {
  if (emergency(state)) return "";
  if (state.owner && !state.mine) return `${state.owner} is in control. You can stop and pause the arm.`;
  if (state.phase.name === "evaluating") return state.mine || !state.phase.requests.length ? "In an evaluation nobody takes over." : "Take control to judge the episodes.";
  if (state.mine) return "Keys, pads or gamepad move the tool; Shift moves slowly.";
  return "Take control to lead the arm.";
}

// The same with a headset on.
export function handsHint({ chosen_arm: chosen, other }) {
  if (!other) return "The tool follows your hand while you hold the grip.";
  return `Your right hand leads the ${chosen} arm, your left hand the ${other.name} arm, while you hold its grip.`;
}
