"""Films of recorded episodes and of those that are being played: the same pictures, in which one sees who acted."""

from types import SimpleNamespace

import av
import numpy as np
import pytest
from tagged import episode, steps

from robot_rl.data.schema import Source
from robot_rl.errors import DataError
from robot_rl.viz.episode_frame import LEAST_WIDTH, LINE, SOURCE_COLOURS, captioned
from robot_rl.viz.film import FilmRecorder, write_film

SOURCES = [Source.POLICY] * 3 + [Source.HUMAN] * 2 + [Source.SCRIPT, Source.HOLD]
RESULT = SimpleNamespace(success=True, failure=None, cycle_time=0.7)


def frames_of(path):
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def play(recorder, one):
    recorder.on_start(one.episode_id, one.observation(0))
    for t, step in enumerate(steps(one)):
        recorder.on_step(step, one.observation(t + 1))
    recorder.on_end(one, RESULT)


def test_a_recorded_and_a_played_episode_give_the_same_film_of_who_acted(tmp_path):
    one = episode(0, len(SOURCES), sources=SOURCES, image_shape=(40, 40, 3))
    write_film([one], tmp_path / "recorded.mp4", fps=10)
    with FilmRecorder(tmp_path / "played.mp4", 10, hold=0.5) as recorder:
        play(recorder, one)
    recorded, played = frames_of(tmp_path / "recorded.mp4"), frames_of(tmp_path / "played.mp4")
    assert len(recorded) == len(one) + 1
    assert len(played) == len(one) + 1 + 5  # the last one stays
    for film in (recorded, played):
        for frame, source in zip(film, SOURCES, strict=False):
            mark = frame[LINE + 5 : LINE + 10, 6:12].reshape(-1, 3).mean(0)
            assert np.abs(mark - SOURCE_COLOURS[source]).max() < 30, source
        assert (film[len(one)][LINE + 5 : LINE + 10, 6:12] > 225).all(), "after the last step nobody acts"
    difference = recorded.astype(int) - played[: len(recorded)]
    assert np.abs(difference[:, 2 * LINE :]).mean() < 8


def test_small_frames_are_enlarged_and_any_size_becomes_even():
    small = np.full((7, 9, 1), 200, np.uint8)
    wide = np.zeros((201, 333, 3), np.uint8)
    assert captioned([small], "a").shape[1] >= LEAST_WIDTH
    for frames in ([small], [wide], [wide, wide[:, :100]]):
        shape = captioned(frames, "a").shape
        assert (shape[0] % 2, shape[1] % 2, shape[2]) == (0, 0, 3)
    enlarged = captioned([small], "a")[2 * LINE :]
    assert (enlarged[:200, :250] == 200).all()


def test_a_film_of_nothing_or_one_that_fails_leaves_no_file(tmp_path):
    with pytest.raises(DataError, match="no episodes to show"):
        write_film([], tmp_path / "a.mp4")
    with pytest.raises(ZeroDivisionError), FilmRecorder(tmp_path / "b.mp4", 10) as recorder:
        play(recorder, episode(0, 3))
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("rate", "shown"), [(1 / 3600, 1), (20, 20), (1e6, 240)])
def test_a_film_of_very_long_or_short_steps_is_one_that_can_be_watched(tmp_path, rate, shown):
    one = episode(0, 3, image_shape=(40, 40, 3))
    with FilmRecorder(tmp_path / "played.mp4", rate) as recorder:
        play(recorder, one)
    write_film([one], tmp_path / "recorded.mp4", fps=rate)
    for name, held in (("played", shown), ("recorded", 0)):
        with av.open(str(tmp_path / f"{name}.mp4")) as container:
            assert container.streams.video[0].average_rate == shown
        assert len(frames_of(tmp_path / f"{name}.mp4")) == 4 + held
