"""From an observation to a percept: state packed and scaled, frames as they are or as features of a frozen encoder.

Every frame is encoded once, for acting and for replay alike, and shifted crops of it only where replay stores them.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from robot_rl.config.components import EncoderConfig, TrainConfig
from robot_rl.data.augment import draw_shifts, pad_edges, shifted
from robot_rl.data.replay.observation_scaling import ObservationPacker
from robot_rl.data.replay.percept import NO_TOOLS, ImageSpec, Percept, PerceptSpec, ToolElements
from robot_rl.data.schema import BASE_ACTION, IMAGE_PREFIX, STAGE_PREFIX, Observation
from robot_rl.errors import ConfigError, SpecError, StepOrderError, UnknownNameError
from robot_rl.learn.engine.cuda_graph import CapturedForward
from robot_rl.learn.engine.hardware import computed_in, device_here
from robot_rl.learn.networks.encoders import TRAINED, make_encoder
from robot_rl.spec import ArraySpec, DictSpec

POSE, WIDTH = "tcp_pose", "gripper_width"


class FrameEncoder(Protocol):
    """Makes the images of a percept from frames."""

    @property
    def spec(self) -> ImageSpec:
        """Format of the images."""
        ...

    def view(self, frames: np.ndarray) -> np.ndarray:
        """Return the images for a policy that acts, of frames (cameras, height, width, 3), uint8; `spec.view_shape`."""
        ...

    def encode(self, frames: np.ndarray, view: np.ndarray) -> np.ndarray:
        """Return the images for replay, of shape `spec.shape`; `view` is the result of `view` for the same frames."""
        ...


class Potential(Protocol):
    """A potential of the frames of an episode so far, by which rewards are shaped.

    Attributes:
        encoder: Name of the frozen encoder of its features.
        camera: Camera of the frames.
        size: Size of the frames before they are encoded [px].
        limit: Its largest value; its least is 0.
    """

    encoder: str
    camera: str
    size: int
    limit: float

    def encode(self, frame: np.ndarray) -> Tensor:
        """Features of a frame (height, width, 3), uint8, of any size; shape (features,), float32."""
        ...

    def begin(self) -> Callable[[Tensor], float]:
        """Start an episode; call the returned function with the features of its frames, each once, in their order."""
        ...


class ImageView(NamedTuple):
    """The input of a policy that acts.

    Attributes:
        state: Packed and scaled, shape (state_size,), float32.
        images: Of shape `view_shape`; None for a policy without images.
    """

    state: np.ndarray
    images: np.ndarray | None


class Perception:
    """Percepts of observations.

    Args:
        specs: Format of the observations.
        cameras: Cameras whose frames are used, in this order; none for a policy without images.
        encoder: Encodes the frames.
        goal: Whether the policy learns to estimate how far it is from the goal.
        potential: Shapes the rewards; None where they are not shaped.
        stages: Potential of an observation in which all stages are reached, in equal parts; 0: they shape nothing.
    """

    def __init__(
        self,
        specs: DictSpec,
        cameras: tuple[str, ...] = (),
        encoder: FrameEncoder | None = None,
        goal: bool = False,
        potential: Potential | None = None,
        stages: float = 0.0,
    ) -> None:
        self._packer, self._encoder = ObservationPacker(specs), encoder
        self._keys = tuple(f"{IMAGE_PREFIX}{camera}" for camera in cameras)
        proposal = self._packer.slice_of(BASE_ACTION)
        self.spec = PerceptSpec(
            self._packer.size,
            encoder.spec if encoder else None,
            ToolElements(*map(self._packer.elements_of, (POSE, WIDTH))) if goal else NO_TOOLS,
            (potential.limit if potential is not None else 0.0) + stages,
            self._packer.unscaled,
            (proposal.start, proposal.stop) if proposal.stop > proposal.start else None,
        )
        self._last: tuple[Observation, ImageView] | None = None
        self._stages = tuple(key for key in specs if key.startswith(STAGE_PREFIX))
        self._potential, self._worth = potential, stages / max(len(self._stages), 1)
        self._shared_features = _shared(encoder, cameras, potential) if potential is not None else None
        self._so_far: Callable[[Tensor], float] | None = None

    def view(self, observation: Observation) -> ImageView:
        """Return what is needed to act; the last one is remembered, and so computed once for acting and learning.

        Raises:
            SpecError: if an entry is missing or has another shape, dtype or order of axes than its spec.
        """
        if self._last is None or self._last[0] is not observation:
            images = self._encoder.view(self._frames(observation)) if self._encoder else None
            self._last = observation, ImageView(self._packer.pack(observation), images)
        return self._last[1]

    def first(self, observation: Observation) -> Percept:
        """Return the percept of the first observation of an episode.

        Raises:
            SpecError: as `view`.
        """
        if self._potential is not None:
            self._so_far = self._potential.begin()
        return self(observation)

    def __call__(self, observation: Observation) -> Percept:
        """Return the percept of the next observation of the episode; call it once for each.

        Raises:
            SpecError: as `view`.
        """
        state, view = self.view(observation)
        potential = self._potential_of(observation, self._so_far)
        if self._encoder is None or view is None:
            return Percept(state, None, potential)
        return Percept(state, self._encoder.encode(self._frames(observation), view), potential)

    def of_rows(self, observations: Mapping[str, np.ndarray]) -> Iterator[Percept]:
        """Return the percepts of the R observations of an episode, given as arrays of shape (R, ...)."""
        so_far = self._potential.begin() if self._potential is not None else None
        for t, state in enumerate(self._packer.pack_rows(observations)):
            row = {
                key: column[t] for key, column in observations.items() if key.startswith((IMAGE_PREFIX, STAGE_PREFIX))
            }
            images = None
            if self._encoder is not None:
                frames = self._frames(row)
                images = self._encoder.encode(frames, self._encoder.view(frames))
            yield Percept(state, images, self._potential_of(row, so_far))

    def states(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the states of R observations, arrays of shape (R, ...), without frames; shape (R, state_size)."""
        return self._packer.pack_rows(observations)

    def _potential_of(self, observation: Observation, so_far: Callable[[Tensor], float] | None) -> float:
        """Compute Phi of an observation that has just been viewed, where rewards are shaped."""
        stages = self._worth * sum(float(observation[key][0]) for key in self._stages)
        if self._potential is None:
            return stages
        return stages + self._progress_of(observation, self._potential, so_far)

    def _progress_of(
        self, observation: Observation, potential: Potential, so_far: Callable[[Tensor], float] | None
    ) -> float:
        if so_far is None:
            raise StepOrderError("a potential is of an episode; start it with its first observation")
        if self._shared_features is not None:
            return so_far(self._shared_features())
        key = IMAGE_PREFIX + potential.camera
        if key not in observation:
            raise SpecError(f"observation: missing {key}, by which rewards are shaped; there are {sorted(observation)}")
        return so_far(potential.encode(observation[key]))

    def _frames(self, observation: Observation) -> np.ndarray:
        size = self.spec.images.size if self.spec.images else 0
        for key in self._keys:
            if key not in observation:
                raise SpecError(f"observation: missing {key}; there are {sorted(observation)}")
            frame = observation[key]
            if frame.shape != (size, size, 3) or frame.dtype != np.uint8:
                raise SpecError(
                    f"observation[{key}]: {frame.dtype} of shape {frame.shape}, expected uint8 of shape "
                    f"{(size, size, 3)}: height, width, RGB of encoder.image_size"
                )
        return np.stack([observation[key] for key in self._keys])


class RawFrames:
    """Keeps frames as they are, for an encoder that is trained."""

    def __init__(self, config: EncoderConfig) -> None:
        shape = (len(config.cameras), config.image_size, config.image_size, 3)
        self.spec = ImageSpec("frames", shape, "uint8", maker="cameras", size=config.image_size, shift=config.shift)

    def view(self, frames: np.ndarray) -> np.ndarray:
        """Return the frames."""
        return frames

    def encode(self, frames: np.ndarray, view: np.ndarray) -> np.ndarray:
        """Return the frames."""
        del view  # the same
        return frames


class FrozenFeatures:
    """Features of several crops of each frame by a frozen encoder.

    The first crop is not shifted. The shifts of the others follow from the pixels, so that features computed again from
    recorded frames are the same.

    Args:
        config: Encoder, crops and projection.
        device: `cpu` or `cuda`, where it computes; frames come from, and features go to, the CPU.
    """

    def __init__(self, config: EncoderConfig, device: str = "cpu") -> None:
        self._crops, self._shift = config.crops, config.shift
        self._device, self._dtype = device, computed_in(config.precision, device)
        self.name = config.name
        encoder = make_encoder(config.name).to(self._dtype)
        fingerprint = _fingerprint(encoder)
        encoder.to(device)
        self._encoder: Callable[[Tensor], Tensor] = CapturedForward(encoder) if device == "cuda" else encoder
        self.maps = torch.empty(0)
        """Of the frames that were viewed last, before the projection, (cameras, all channels, rows, columns)."""
        blank = torch.zeros(1, 3, config.image_size, config.image_size, dtype=self._dtype, device=device)
        with torch.no_grad():
            channels, *plane = encoder(blank).shape[1:]
        self._projection: Tensor | None = None
        if 0 < config.projection < channels:  # Johnson-Lindenstrauss: keeps distances between features, roughly
            generator = torch.Generator().manual_seed(0)
            matrix = torch.randn(config.projection, channels, generator=generator) / config.projection**0.5
            self._projection, channels = matrix[:, :, None, None].to(device, self._dtype), config.projection
        self.spec = ImageSpec(
            "features",
            (config.crops, len(config.cameras), channels, *plane),
            "float16",
            maker=(
                f"{config.name} ({fingerprint}), {config.crops} crops within {config.shift} px, {channels} channels, "
                f"{str(self._dtype).removeprefix('torch.')}, {', '.join(config.cameras)} at {config.image_size} px"
            ),
            size=config.image_size,
        )
        if device == "cuda":  # A recording takes seconds, which no period of control has.
            frames = np.zeros((len(config.cameras), config.image_size, config.image_size, 3), np.uint8)
            self.encode(frames, self.view(frames))

    def view(self, frames: np.ndarray) -> np.ndarray:
        """(cameras, height, width, 3) -> (cameras, channels, rows, columns), float16, of the crop not shifted."""
        self.maps = self._maps(frames)
        return self._packed(self.maps)

    def encode(self, frames: np.ndarray, view: np.ndarray) -> np.ndarray:
        """(cameras, height, width, 3) -> (K, cameras, channels, rows, columns), float16."""
        if self._crops == 1:
            return view[None]
        others = self._packed(self._maps(np.concatenate(list(self._shifted(frames)))))
        return np.concatenate([view[None], others.reshape(self._crops - 1, *view.shape)])

    @torch.no_grad()
    def _maps(self, images: np.ndarray) -> Tensor:
        """(B, height, width, 3) -> (B, all channels, rows, columns)."""
        pixels = torch.from_numpy(images).to(self._device).permute(0, 3, 1, 2)  # channels last in memory, as they come
        return self._encoder(pixels.to(self._dtype))

    @torch.no_grad()
    def _packed(self, maps: Tensor) -> np.ndarray:
        """(B, all channels, rows, columns) -> (B, channels, rows, columns), float16."""
        if self._projection is not None:
            maps = nn.functional.conv2d(maps, self._projection)
        packed: np.ndarray = maps.half().contiguous().cpu().numpy()
        return packed

    def _shifted(self, frames: np.ndarray) -> Iterator[np.ndarray]:
        """Return all frames with their edges repeated, moved by up to `shift` pixels, each camera by itself."""
        rng, reach = np.random.default_rng(zlib.crc32(frames.data)), self._shift
        padded = pad_edges(frames, reach)
        for _ in range(self._crops - 1):
            corners = draw_shifts(rng, reach, (len(frames), 2)).tolist()
            yield np.stack([shifted(camera, reach, *corner) for camera, corner in zip(padded, corners, strict=True)])


def make_perception(
    specs: DictSpec, config: TrainConfig, potential: Potential | None = None, *, proposal: int | None = None
) -> Perception:
    """Make the perception of a run's configuration.

    Args:
        specs: Format of the observations.
        config: The run's configuration.
        potential: Shapes the rewards; None where they are not shaped, or nothing is learned.
        proposal: Length of the action that a base proposes, which policy and critics observe too; None without a base.

    Raises:
        UnknownNameError: if a camera is configured that is not observed.
        ConfigError: if the encoder cannot be made.
    """
    if proposal is not None:
        specs = {**specs, BASE_ACTION: ArraySpec((proposal,), scale=1.0, low=-1.0, high=1.0)}
    stages = config.reward.stages.shaping if any(key.startswith(STAGE_PREFIX) for key in specs) else 0.0
    if config.observations == "state":
        return Perception(specs, potential=potential, stages=stages)
    encoder = config.encoder
    if not encoder.cameras:
        raise ConfigError("observations=pixels without cameras: set encoder.cameras to those that the policy sees")
    valid = [key.removeprefix(IMAGE_PREFIX) for key in specs if key.startswith(IMAGE_PREFIX)]
    for camera in encoder.cameras:
        if camera not in valid:
            raise UnknownNameError("camera", camera, valid)
    frame_encoder: FrameEncoder = (
        RawFrames(encoder) if encoder.name in TRAINED else FrozenFeatures(encoder, device_here(config.device))
    )
    return Perception(
        specs, encoder.cameras, frame_encoder, goal=config.sac.goal_weight > 0, potential=potential, stages=stages
    )


def _shared(
    encoder: FrameEncoder | None, cameras: tuple[str, ...], potential: Potential
) -> Callable[[], Tensor] | None:
    """Return a function for the features that a potential needs of frames just viewed, if they are computed anyway."""
    if not isinstance(encoder, FrozenFeatures) or potential.camera not in cameras:
        return None
    if (encoder.name, encoder.spec.size) != (potential.encoder, potential.size):
        return None
    row = cameras.index(potential.camera)
    return lambda: encoder.maps[row].flatten().float().cpu()


def _fingerprint(network: nn.Module) -> str:
    """Return a fingerprint of the parameters of a network."""
    digest = hashlib.sha256()
    for name, value in network.state_dict().items():
        digest.update(name.encode())
        digest.update(value.contiguous().float().numpy().tobytes())
    return digest.hexdigest()[:8]
