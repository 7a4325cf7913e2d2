"""Questions in plain lines: flags answer them, wrong answers are explained, and nobody is asked where nobody is."""

import pytest

from robot_rl.errors import ConfigError
from robot_rl.init.questions import Questions

OPTIONS = [("franka", "FR3"), ("ur", "")]


def asked(*lines, given=None, interactive=True):
    answers, shown = iter(lines), []

    def read(prompt):
        shown.append(prompt)
        try:
            return next(answers)
        except StopIteration:
            raise EOFError from None

    return Questions(given or {}, interactive=interactive, read=read, show=shown.append), shown


@pytest.mark.parametrize(("line", "answer"), [("2", "ur"), ("franka", "franka"), ("", "ur")])
def test_a_choice_by_number_name_or_default(line, answer):
    questions, shown = asked(line)
    assert questions.choose("--arm", "which arm?", OPTIONS, "ur") == answer
    assert "  1  franka  (FR3)" in shown and shown[-1] == "which arm? [ur]: "


def test_a_wrong_answer_is_explained_and_the_question_put_again():
    questions, shown = asked("3", "kuka", "1")
    assert questions.choose("--arm", "which arm?", OPTIONS) == "franka"
    assert "  'kuka' is none of: franka, ur" in shown


def test_a_flag_answers_without_a_question():
    questions, shown = asked(given={"--arm": "ur"})
    assert questions.choose("--arm", "which arm?", OPTIONS) == "ur" and not shown
    questions, _ = asked(given={"--arm": "kuka"})
    with pytest.raises(ConfigError, match="--arm: 'kuka' is none of: franka, ur"):
        questions.choose("--arm", "which arm?", OPTIONS)


def test_without_a_person_defaults_count_and_needed_answers_name_their_flag():
    questions, shown = asked(interactive=False)
    assert questions.ask("--name", "its name?", "cell") == "cell"
    with pytest.raises(ConfigError, match="--host is needed"):
        questions.ask("--host", "its address?", None)
    assert not shown


def test_an_answer_that_is_needed_is_asked_for_until_it_comes_or_the_input_ends():
    questions, shown = asked("", "10.0.0.2")
    assert questions.ask("--host", "its address?", None) == "10.0.0.2" and "  an answer is needed" in shown
    with pytest.raises(ConfigError, match="the input ended"):
        questions.ask("--host", "its address?", None)
