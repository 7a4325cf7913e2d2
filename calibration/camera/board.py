"""Calibration boards: geometry and pictures of ChArUco and AprilTag grids.

The board's frame has its origin in the outer top left corner of the pattern, x to the right and y down along it, z away
from the viewer. All corners lie in z = 0.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import cv2
import numpy as np

from robot_rl.errors import CalibrationError

KINDS = ("charuco", "apriltag")
_DEFAULT_DICTIONARY = {"charuco": "5X5_250", "apriltag": "APRILTAG_36h11"}
_EXAMPLE = "charuco:11x8:20mm:15mm or apriltag:7x5:24mm:8mm"
_SPEC = re.compile(r"(\w+):(\d+)x(\d+):([\d.]+)mm:([\d.]+)mm(?::(\w+))?")
MARGIN = 0.5
"""White rim around the pattern, in squares or tags; without it, markers at the rim are not detected."""


@dataclass(frozen=True)
class Board:
    """A printed board.

    Attributes:
        kind: `charuco` or `apriltag`.
        columns: Squares, or tags, from left to right.
        rows: From top to bottom.
        size: Side of a square, or of a tag [m].
        inner: Side of the marker in a square, or the gap between two tags [m].
        dictionary: Name of OpenCV's dictionary of markers, without `DICT_`.
    """

    kind: str
    columns: int
    rows: int
    size: float
    inner: float
    dictionary: str

    def __post_init__(self) -> None:
        """Validate the dimensions and the dictionary.

        Raises:
            CalibrationError: if there is no such board.
        """
        if self.kind not in KINDS:
            raise CalibrationError(f"board kind is {self.kind!r}; valid: {', '.join(KINDS)}, e.g. {_EXAMPLE}")
        if not hasattr(cv2.aruco, f"DICT_{self.dictionary}"):
            valid = sorted(name[5:] for name in dir(cv2.aruco) if name.startswith("DICT_"))
            raise CalibrationError(f"unknown dictionary {self.dictionary!r}; valid: {', '.join(valid)}")
        least = 3 if self.kind == "charuco" else 2
        if min(self.columns, self.rows) < least:
            raise CalibrationError(f"a {self.kind} board needs at least {least} x {least}, got {self}")
        if self.kind == "charuco" and not 0.0 < self.inner < self.size:
            raise CalibrationError(f"the marker must be smaller than its square and above 0, got {self}")
        if self.kind == "apriltag" and not min(self.size, self.inner) > 0.0:
            raise CalibrationError(f"the tags and the gaps between them must be above 0, got {self}")
        available = len(self._dictionary.bytesList)
        if self._marker_count > available:
            raise CalibrationError(f"{self} needs {self._marker_count} markers, {self.dictionary} has {available}")

    @classmethod
    def parse(cls, text: str) -> Board:
        """Parse a text like `charuco:11x8:20mm:15mm` or `apriltag:7x5:24mm:8mm`.

        The text is columns x rows, then the sides of a square and of its marker, or of a tag and of the gap. A
        dictionary may follow, e.g. `:4X4_50`.

        Raises:
            CalibrationError: if the text describes no board.
        """
        match = _SPEC.fullmatch(text.strip())
        if match is None:
            raise CalibrationError(
                f"cannot read board {text!r}; valid is KIND:COLUMNSxROWS:SIZEmm:SIZEmm, e.g. {_EXAMPLE}"
            )
        kind, columns, rows, size, inner, dictionary = match.groups()
        try:
            lengths = float(size) / 1e3, float(inner) / 1e3
        except ValueError as error:
            raise CalibrationError(f"cannot read board {text!r}: {error}") from error
        return cls(kind, int(columns), int(rows), *lengths, dictionary or _DEFAULT_DICTIONARY.get(kind, kind))

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        text = f"{self.kind}:{self.columns}x{self.rows}:{1e3 * self.size:g}mm:{1e3 * self.inner:g}mm"
        return text if self.dictionary == _DEFAULT_DICTIONARY.get(self.kind) else f"{text}:{self.dictionary}"

    @property
    def extent(self) -> tuple[float, float]:
        """Width and height of the pattern [m]."""
        if self.kind == "charuco":
            return self.columns * self.size, self.rows * self.size
        pitch = self.size + self.inner
        return self.columns * pitch - self.inner, self.rows * pitch - self.inner

    @property
    def margin(self) -> float:
        """Width of the white rim [m]."""
        return MARGIN * self.size

    @functools.cached_property
    def corners(self) -> np.ndarray:
        """Corners to detect, by id, in the board's frame [m]. Shape (n, 3)."""
        if self.kind == "charuco":
            x, y = np.meshgrid(np.arange(1, self.columns), np.arange(1, self.rows))
            return self.size * np.stack((x.ravel(), y.ravel(), np.zeros(x.size)), axis=1)
        tags = np.array([(x, y, 0.0) for x, y in self._marker_origins])
        square = self.size * np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)])
        return (tags[:, None] + square).reshape(-1, 3)

    def black_rectangles(self) -> np.ndarray:
        """Return the black areas as rectangles (left, top, width, height) in the board's frame [m]. Shape (n, 4)."""
        rectangles = []
        if self.kind == "charuco":
            for row in range(self.rows):
                columns = range(row % 2, self.columns, 2)
                rectangles += [(column * self.size, row * self.size, self.size, self.size) for column in columns]
        side = self.inner if self.kind == "charuco" else self.size
        cells = self._dictionary.markerSize + 2
        for number, (left, top) in enumerate(self._marker_origins):
            dark = self._dictionary.generateImageMarker(number, cells, borderBits=1) == 0
            cell = side / cells
            for row, line in enumerate(dark):
                edges = np.flatnonzero(np.diff(np.concatenate(([False], line, [False])).astype(int)))
                for start, stop in edges.reshape(-1, 2):
                    rectangles.append((left + start * cell, top + row * cell, (stop - start) * cell, cell))
        return np.array(rectangles)

    def image(self, pixels_per_meter: float) -> np.ndarray:
        """Return a picture of the board with its margin, uint8, shape (height, width)."""
        scale, margin = pixels_per_meter, self.margin
        width, height = (round(scale * (side + 2 * margin)) for side in self.extent)
        picture = np.full((height, width), 255, np.uint8)
        for left, top, wide, high in self.black_rectangles():
            x0, x1 = round(scale * (left + margin)), round(scale * (left + wide + margin))
            y0, y1 = round(scale * (top + margin)), round(scale * (top + high + margin))
            picture[y0:y1, x0:x1] = 0
        return picture

    @functools.cached_property
    def _dictionary(self) -> cv2.aruco.Dictionary:
        return cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, f"DICT_{self.dictionary}"))

    @property
    def _marker_count(self) -> int:
        return self.columns * self.rows // 2 if self.kind == "charuco" else self.columns * self.rows

    @property
    def _marker_origins(self) -> list[tuple[float, float]]:
        """Top left corners of the markers, by number [m]; on a ChArUco board they fill the white squares."""
        cells = [(column, row) for row in range(self.rows) for column in range(self.columns)]
        if self.kind == "charuco":
            gap = 0.5 * (self.size - self.inner)
            return [(c * self.size + gap, r * self.size + gap) for c, r in cells if (c + r) % 2]
        pitch = self.size + self.inner
        return [(c * pitch, r * pitch) for c, r in cells]
