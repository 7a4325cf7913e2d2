"""The loop of a practice: whose turn it is, the scene that is handed on, and when a person is needed."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from robot_rl.calling.caller import Caller
from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.env.supervision import RESET
from robot_rl.errors import RobotLostError
from robot_rl.practice.files import PracticeFiles, PracticePlan, PracticeState
from robot_rl.practice.judged_episodes import judged_episodes
from robot_rl.practice.place import Configs, PracticePlace
from robot_rl.practice.stage import Stage
from robot_rl.practice.turns import Turns
from robot_rl.run.conclude import OpenTraining, conclude
from robot_rl.run.demonstrate import record_demonstrations
from robot_rl.run.evaluation import Evaluation, HeldOut
from robot_rl.run.resume import how_far
from robot_rl.system.progress import Progress

if TYPE_CHECKING:  # the console takes a second to import
    from robot_rl.hil.turns_operator import TurnsOperator


class Practice:
    """The loop of a practice.

    Args:
        configs: The configuration of each training.
        plan: What is practised, and who is beside the robot.
        trainings: By task, in turn.
        stage: The scene.
        files: The files of the practice.
        caller: Calls the person.
        progress: Progress of all tasks.
        place: Where it takes place.
        person: Who takes over, judges and makes the scene ready; None: nobody is there.
    """

    def __init__(
        self,
        configs: Configs,
        plan: PracticePlan,
        trainings: Mapping[str, OpenTraining],
        stage: Stage,
        files: PracticeFiles,
        caller: Caller,
        progress: Progress,
        place: PracticePlace,
        person: TurnsOperator | None = None,
    ) -> None:
        self._person, self._to_reset = person, False
        self._configs, self._plan, self._trainings, self._stage, self._place = configs, plan, trainings, stage, place
        self._env_steps = next(iter(configs.values())).env_steps
        self._evaluated: dict[str, Evaluation] = {}
        self._held_out: Mapping[str, HeldOut] = {}  # of the evaluation in turn, once it has begun
        self._files, self._caller, self._progress = files, caller, progress
        state = files.state()
        self._turns = Turns(tuple(trainings), plan.patience, state.next, state.fruitless_s)
        self._calls, self._resets = state.calls, state.resets
        stage.between_s = state.between_s
        if state.current:
            stage.restore(state.current, state.scene)
            if person is not None:  # they are called again
                self._to_reset = state.to_reset
            elif state.to_reset or self._turns.stuck(stage.obstacles()) is not None:  # whoever resumes it has done it
                self._turns.helped()
                self._resets += not state.to_reset
                stage.current = ""
        self._stop = self._stopped = False
        if person is not None:
            person.turn(self._turns.next)

    @property
    def env_steps(self) -> int:
        """Online steps of all tasks so far."""
        return sum(opened.training.env_steps for opened in self._trainings.values())

    @property
    def robot_s(self) -> float:
        """Robot time so far: online episodes, and the ways between them [s]."""
        steps = (
            opened.training.env_steps * opened.env.environment_spec.control_period
            for opened in self._trainings.values()
        )
        return sum(steps) + self._stage.between_s

    @property
    def person_s(self) -> float:
        """Time for which an operator has led and demonstrated [s]."""
        return float(self.effort["seconds"])

    @property
    def effort(self) -> dict[str, Any]:
        """The price for the person in all tasks together; see `HumanEffort.figures`."""
        total = Counter[str]()
        for opened in self._trainings.values():
            total.update(opened.training.record.effort.figures)
        total["manual_resets"] += self._resets
        return {name: round(value, 3) for name, value in total.items()}

    def request_stop(self) -> None:
        """End the practice with the running episode; for a signal handler."""
        self._stop = True
        for opened in self._trainings.values():
            opened.training.stop_soon()
        self._progress.log("stopping at the end of this episode, then saving; once more to stop at once")

    def run(self) -> str | None:
        """Demonstrate and learn; return None when all steps are done, else why it ended before."""
        self._demonstrate()
        for opened in self._trainings.values():
            training = opened.training
            if self._stop or not (opened.resumed or training.demonstrate()) or not training.pretrain():
                return "stopped before the first step"
        for opened in self._trainings.values():
            opened.training.begin_learning()
        reason = None
        while reason is None and self.env_steps < self._env_steps and not self._stop:
            reason = self._call_if_stuck()
            if reason is None and self._may_go_on():
                self._play()
        for opened in self._trainings.values():  # before the scene, which may have to be asked for
            opened.training.end_learning()
        self._save()
        if reason is None and self._stop:
            reason = f"stopped after {how_far(self.env_steps, self._env_steps)}"
        return reason

    def evaluate(self) -> str | None:
        """Evaluate the policies in turn where no program can reset the scene; return why it ended before, if it did.

        Each policy plays in the scene that the other one has left, until all have played as many episodes as wanted.
        """
        if self._place.resets:
            return None
        with contextlib.ExitStack() as stack:
            held = {task: stack.enter_context(judged_episodes(opened)) for task, opened in self._trainings.items()}
            self._held_out = held
            reason = self._evaluate_in_turn(held)
        self._save()
        self._evaluated = {task: one.evaluation for task, one in held.items()}
        return reason

    def _evaluated_so_far(self) -> str:
        """Return how many episodes of an evaluation in turn have been played; nothing before it."""
        wanted = {task: config.evaluation.episodes for task, config in self._configs.items()}
        return ", ".join(f"{task} {len(held.results)}/{wanted[task]}" for task, held in self._held_out.items())

    def _evaluate_in_turn(self, held: Mapping[str, HeldOut]) -> str | None:
        self._turns = Turns(tuple(held), self._plan.patience, self._turns.next)
        wanted = {task: config.evaluation.episodes for task, config in self._configs.items()}
        reason, between = None, self._stage.between_s
        while reason is None and any(len(held[task].results) < wanted[task] for task in held):
            if self._stop:
                reason = "stopped in the evaluation, which will begin again"
            elif (reason := self._call_if_stuck()) is None and self._may_go_on():
                self._take_turn(lambda task: held[task].play(), lambda task, result: None)
                self._stage.between_s = between  # which counts what was practised
                self._progress.update(self.env_steps, evaluated=self._evaluated_so_far())
        return reason

    def _demonstrate(self) -> None:
        """Let the operator demonstrate the tasks in turn, so that nobody has to make the scene ready in between."""
        wanted = {task: config.demonstrations for task, config in self._configs.items()}
        for number in range(max(wanted.values())):
            for task, opened in self._trainings.items():
                store = opened.store
                if opened.resumed or len(store) >= min(number + 1, wanted[task]) or self._stop:
                    continue
                record_demonstrations(
                    opened.deployment.demonstrator(opened.env),
                    store,
                    episodes=number + 1,
                    seed=self._configs[task].seed,
                    stop=lambda: self._stop,
                    retry=opened.deployment.retry(self._progress.log),
                    may_start=partial(self._may_demonstrate, task),
                    log=self._progress.log,
                )
                if len(store) > number:
                    self._progress.update(0, demonstrations=f"{number + 1}/{wanted[task]} {task}")
                    self._clear(tidy=not store.summaries()[-1].success)
        self._progress.update(self.env_steps, demonstrations=None)

    def _may_demonstrate(self, task: str) -> bool:
        """Return whether a demonstration may start; each attempt begins in the scene that the one before has left."""
        if not self._trainings[task].training.may_start():
            return False
        self._make_ready(task)
        return True

    def _make_ready(self, task: str) -> None:
        """Choose whether the next episode of a task begins in the scene as it is, or has to reset it."""
        place = self._stage.places[task]
        place.task.resets = not self._stage.current or self._stage.obstacles()[task] is not None
        self._stage.current = task
        if self._person is not None:
            self._person.turn(task, self._evaluated_so_far())

    @property
    def _held(self) -> bool:
        """Whether somebody holds the arm."""
        return self._person.held if self._person is not None else not self._place.may_move()

    def _may_go_on(self) -> bool:
        """Return whether the arm may move; wait a moment while somebody holds it, and call them if the arm stopped."""
        if self._person is None:
            return self._place.may_move()
        free = self._person.beside(self._stage.current or self._turns.next).may_start()
        before, self._stopped = self._stopped, self._person.stopped is not None
        if self._stopped and not before:
            self._calls += self._caller.call(f"{self._turns.next} needs a person: {self._person.stopped}")
        return free

    def _call_if_stuck(self) -> str | None:
        """Pass the turn to a task that can begin; call the person if none can.

        Returns:
            Why the practice has to end, as nobody is there; None if it goes on.
        """
        turns, stage = self._turns, self._stage
        if (lost := self._judge_lost()) is not None:
            self._calls += self._caller.call(lost)
            return f"stopped safely, as {lost}"
        if not stage.current:  # the scene was laid out for the first task
            return None
        if self._to_reset and self._person is not None:
            self._wait_for(self._person, "you have ended the last episode to reset the scene")
            return None
        if (trouble := turns.stuck(stage.obstacles())) is None:
            return None
        message = f"{self._turns.next} needs a person: {trouble}"
        self._calls += self._caller.call(message)
        if self._person is not None:
            self._wait_for(self._person, trouble)
            return None
        if not self._place.resets:
            return f"stopped safely and waits for a person: {trouble}; make the scene ready for {turns.next}"
        if self._plan.unattended:
            return f"stopped safely and waits, as nobody is there to help: {trouble}"
        self._resets += 1
        turns.helped()
        self._progress.log("the scene was reset, which counts as a manual reset")
        stage.current = ""
        return None

    def _wait_for(self, person: TurnsOperator, trouble: str) -> None:
        """Have the arm hold until the person has made the scene ready for the next turn, or the practice is stopped."""
        self._save()  # as the wait may be long, and be killed
        what = (
            "the scene is laid out anew when you press"
            if self._place.resets
            else f"make the scene ready for {self._turns.next}, then press"
        )
        text = f"{what} Resume, or `start` on the device: {trouble}"
        self._progress.log(f"the arm holds; {text}")
        person.need(text)
        while not self._stop and not self._may_go_on():
            pass
        person.needless()
        if self._stop:
            return
        self._resets += not self._to_reset  # that one is counted with its episode
        self._to_reset, self._stage.current = False, ""
        self._turns.helped()
        self._save()
        self._progress.log("a person has made the scene ready, which counts as a manual reset")

    def _judge_lost(self) -> str | None:
        """Return which task has lost its judge, if one has: then nobody knows whose turn it is."""
        return next(filter(None, (opened.judge_lost for opened in self._trainings.values())), None)

    def _take_turn(
        self, play: Callable[[str], EpisodeResult | None], played: Callable[[str, EpisodeResult], None]
    ) -> None:
        """Have the task whose turn it is play an episode, if it can start yet, and clear up after it.

        Args:
            play: Plays an episode of a task; None if it could not start.
            played: Called with the task and its episode, before the arm clears up, as it may be held then for long.
        """
        task, turns, stage = self._turns.next, self._turns, self._stage
        self._make_ready(task)
        self._save()  # with the scene, so that a killed practice goes on with this episode
        before = stage.between_s
        stage.depart()
        result = play(task)
        if result is None:  # a scene that was to be reset still is
            stage.current = "" if stage.places[task].task.resets else task
            stage.places[task].task.resets = False
            return
        stage.places[task].task.resets = False
        self._to_reset = result.cut == RESET
        turns.after(task, success=result.success, seconds=result.cycle_time + stage.between_s - before)
        played(task, result)
        if not self._place.resets:  # the scene is as the episode has left it, even if the arm is lost on its way
            self._save()
        before = stage.between_s
        self._clear(tidy=not result.success)
        turns.fruitless_s += stage.between_s - before

    def _clear(self, *, tidy: bool) -> None:
        """Clear up after an episode; an arm that is held, or not heard for a moment, has time to come back."""
        deployment = self._trainings[self._stage.current].deployment
        retry = deployment.retry(self._progress.log).until(lambda: self._stop)

        def clear() -> bool:
            try:
                return self._stage.clear(tidy=tidy) and not self._held
            except RobotLostError:
                if self._held:
                    return False  # it was held on its way, which does not count as lost
                raise

        cleared = False
        while not cleared:
            if self._may_go_on():
                cleared = bool(retry.attempt(clear))
            if self._stop:
                return

    def _play(self) -> None:
        """Play and learn from an episode of the task whose turn it is."""
        self._take_turn(lambda task: self._trainings[task].play_next(), self._record)

    def _record(self, task: str, result: EpisodeResult) -> None:
        """Add the line of an episode."""
        effort = self.effort
        self._files.record(
            {
                "task": task,
                "env_step": self.env_steps,
                "success": result.success,
                "assisted": result.assisted,
                "steps": result.steps,
                "robot_s": round(self.robot_s, 3),
                "person_s": round(effort["seconds"], 3),
                "calls": self._calls,
                "manual_resets": effort["manual_resets"],
                "person": effort,
            }
        )

    def _save(self) -> None:
        """Write whose turn it is, and the scene."""
        stage, turns = self._stage, self._turns
        place = stage.places.get(stage.current)
        state = PracticeState(
            next=turns.next,
            current="" if place is None or place.task.resets else stage.current,
            scene=stage.save(),
            fruitless_s=turns.fruitless_s,
            between_s=stage.between_s,
            calls=self._calls,
            resets=self._resets,
            to_reset=self._to_reset,
        )
        self._files.save(state)

    def conclude(self) -> dict[str, Any]:
        """Evaluate every policy that is not yet; return the summary, which is written with the picture."""
        summaries = {}
        for task, opened in self._trainings.items():
            if self._person is not None:
                self._person.turn(task, self._evaluated_so_far())
            with self._stage.resetting(task):
                summaries[task] = conclude(opened, self._evaluated.get(task))
        effort = self.effort
        summary = {
            "tasks": summaries,
            "env_steps": self.env_steps,
            "robot_minutes": self.robot_s / 60.0,
            "between_minutes": self._stage.between_s / 60.0,
            "person_minutes": self.person_s / 60.0,
            "person": effort,
            "calls": self._calls,
            "manual_resets": effort["manual_resets"],
            "unattended": self._plan.unattended,
            "evaluated": "held-out resets" if self._place.resets else "episodes in turn",
        }
        self._files.conclude(summary)
        return summary
