"""Kinds of lenses, as a user calls them, and the model that each is calibrated with. Needs no OpenCV."""

LENS_MODELS = {"pinhole": "rational_polynomial", "fisheye": "equidistant"}
"""Keys of `calibration.result.lens.COEFFICIENTS` by kind."""
