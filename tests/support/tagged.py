"""Episodes in which every number says which episode and step it belongs to, so that a mis-indexed read cannot pass."""

import dataclasses

import numpy as np

from robot_rl.data.replay.observation_scaling import ObservationPacker
from robot_rl.data.replay.percept import Percept
from robot_rl.data.schema import Episode, Source, Step
from robot_rl.spec import ArraySpec

SPECS = {
    "state/b": ArraySpec((2,)),
    "state/a": ArraySpec((1,)),
    "images/wrist": ArraySpec((8, 6, 3), "uint8"),
}
PACKER = ObservationPacker(SPECS)
ACTION_SIZE = 2


def tag(number, step):
    return 1000.0 * number + step


def state(number, step):
    """The packed observation at a step."""
    return np.full(PACKER.size, tag(number, step), np.float32)


def percept(number, step):
    return Percept(state(number, step))


def action(number, step):
    return np.full(ACTION_SIZE, tag(number, step) + 0.5, np.float32)


def episode(number, steps, *, sources=None, end="terminated", image_shape=(8, 6, 3)):
    """Episode `number`: observation t is tag(number, t), action and reward of step t are that plus 0.5."""
    tags = tag(number, np.arange(steps + 1)).astype(np.float32)
    last = np.arange(steps) == steps - 1
    frames = np.random.default_rng(number).integers(0, 256, (steps + 1, *image_shape), np.uint8)
    frames[:, 0, 0, 0] = np.arange(steps + 1) % 256
    actions = np.stack([action(number, t) for t in range(steps)])
    return Episode(
        episode_id=f"episode-{number}",
        observations={
            "images/wrist": frames,
            "state/a": tags[:, None],
            "state/b": np.stack([tags, tags], 1),
        },
        action=actions,
        action_policy=-actions,
        source=np.array(sources if sources is not None else [Source.POLICY] * steps, np.int8),
        reward=tags[:-1] + np.float32(0.5),
        terminated=last & (end == "terminated"),
        truncated=last & (end == "truncated"),
        stamp_obs=(2**62 + number * 10**6 + np.arange(steps + 1)).astype(np.int64),
        stamp_action=(2**61 + number * 10**6 + np.arange(steps)).astype(np.int64),
        reward_source="task",
        metadata={"number": number, "success": end == "terminated", "note": "äß", "values": [1, 2.5, None, {"k": "v"}]},
    )


def percepts(one):
    return [Percept(row) for row in PACKER.pack_rows(one.observations)]


def valid(number, steps, **options):
    """An episode that also satisfies what `data verify` insists on: actions in [-1, 1]."""
    made = episode(number, steps, **options)
    return dataclasses.replace(made, action=np.sin(made.action), action_policy=np.cos(made.action))


def steps(episode):
    """The steps that an episode was made of."""
    return [
        Step(
            observation={key: column[t] for key, column in episode.observations.items()},
            action=episode.action[t],
            action_policy=episode.action_policy[t],
            source=Source(episode.source[t]),
            reward=float(episode.reward[t]),
            reward_source=episode.reward_source,
            terminated=bool(episode.terminated[t]),
            truncated=bool(episode.truncated[t]),
            stamp_obs=int(episode.stamp_obs[t]),
            stamp_action=int(episode.stamp_action[t]),
            episode_id=episode.episode_id,
            index=t,
        )
        for t in range(len(episode))
    ]


def cut(whole, length, metadata):
    """The first `length` steps of an episode, as it comes back when its writer was interrupted."""
    ends = {"terminated": np.zeros(length, bool), "truncated": np.arange(length) == length - 1}
    columns = {name: getattr(whole, name)[:length] for name in COLUMNS if name not in (*ends, "stamp_obs")}
    return dataclasses.replace(
        whole,
        **columns,
        **ends,
        stamp_obs=whole.stamp_obs[: length + 1],
        observations={key: column[: length + 1] for key, column in whole.observations.items()},
        metadata=metadata,
    )


COLUMNS = ("action", "action_policy", "source", "reward", "terminated", "truncated", "stamp_obs", "stamp_action")


def assert_same(one, other):
    """Bit for bit."""
    arrays = {name: (getattr(one, name), getattr(other, name)) for name in COLUMNS}
    assert one.observations.keys() == other.observations.keys()
    arrays |= {key: (one.observations[key], other.observations[key]) for key in one.observations}
    for name, (a, b) in arrays.items():
        assert a.dtype == b.dtype, name
        assert a.shape == b.shape, name
        assert a.tobytes() == b.tobytes(), name
    for name in ("episode_id", "reward_source", "metadata", "schema_version"):
        assert getattr(one, name) == getattr(other, name), name
