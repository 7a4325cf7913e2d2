"""Reports of intrinsics and of hand-eye calibrations."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calibration.camera.intrinsics import IntrinsicsFit, coverage
from calibration.hand_eye.hand_eye import HandEyeFit
from calibration.report.change_figure import change_figure, change_heading
from calibration.report.report import CalibrationReport, bars, new_figure
from calibration.result.camera import PARAMETERS
from robot_rl.viz.learning_curve import BLUE, ORANGE

_COEFFICIENTS = {
    "plumb_bob": ("k1", "k2", "p1", "p2", "k3"),
    "rational_polynomial": ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"),
    "equidistant": ("k1", "k2", "k3", "k4"),
}


def intrinsics_report(fit: IntrinsicsFit) -> CalibrationReport:
    """Make the report of intrinsics: parameters with uncertainty, places of the corners, and residuals."""
    result = fit.result
    sigma = np.sqrt(np.diag(np.array(result.covariance)))
    names = (*PARAMETERS, *_COEFFICIENTS[result.model])
    rows = [("number", "value", "sigma")]
    rows += [
        (n, f"{v:.5g}" if i > 3 else f"{v:.3f}", f"{s:.2g}")
        for i, (n, v, s) in enumerate(zip(names, result.vector, sigma, strict=True))
    ]
    return CalibrationReport(
        f"Intrinsics of camera {result.camera}, {result.width} x {result.height} px, {result.model}",
        fit.quality,
        {"The camera": rows},
        {"Corners and errors": _errors_over_picture(fit), "Views": _views(fit)},
    )


def _errors_over_picture(fit: IntrinsicsFit) -> Figure:
    figure = new_figure(11, 4.4)
    cells, arrows = figure.subplots(1, 2)
    width, height = fit.views[0].size
    extent = (-0.5, width - 0.5, height - 0.5, -0.5)
    shown = cells.imshow(coverage(fit.views), extent=extent, cmap="Greens", vmin=0, vmax=20, aspect="equal")
    figure.colorbar(shown, ax=cells, label="corners per cell", extend="max", shrink=0.8)
    pixels, errors = np.concatenate([v.pixels for v in fit.views]), np.concatenate(fit.errors)
    cells.plot(*pixels.T, ".", color=BLUE, markersize=1.5)
    cells.set(title="where the corners were", xlabel="x [px]", ylabel="y [px]")
    gain = 0.03 * width / max(float(np.percentile(np.linalg.norm(errors, axis=1), 90)), 1e-6)
    arrows.quiver(*pixels.T, *errors.T, angles="xy", scale_units="xy", scale=1 / gain, color=ORANGE, width=0.0015)
    arrows.set(
        xlim=extent[:2],
        ylim=extent[2:],
        title=f"errors, {gain:.0f} times as long",
        xlabel="x [px]",
        ylabel="y [px]",
        aspect="equal",
    )
    return figure


def _views(fit: IntrinsicsFit) -> Figure:
    figure = new_figure(11, 3.4)
    views, scatter = figure.subplots(1, 2, width_ratios=(2.2, 1))
    rms = [float(np.sqrt(np.mean(e**2))) for e in fit.errors]
    bars(views, [v.name for v in fit.views], rms, "reprojection error, rms [px]", fit.result.rms)
    _scatter(scatter, np.concatenate(fit.errors))
    return figure


def hand_eye_report(fit: HandEyeFit) -> CalibrationReport:
    """Make the report of a hand-eye calibration: pose with uncertainty, residuals by view, and OpenCV's solutions."""
    result = fit.result
    X, sigma = result.T_parent_camera, result.sigma
    rows = [("number", "value", "sigma")]
    rows += [
        (f"{n} [mm]", f"{1e3 * v:.3f}", f"{1e3 * s:.3f}") for n, v, s in zip("xyz", X.position, sigma, strict=False)
    ]
    rows += [
        (f"r{n} [deg]", f"{v:.4f}", f"{s:.4f}")
        for n, v, s in zip("xyz", np.degrees(X.rotvec), np.degrees(sigma[3:]), strict=True)
    ]
    forms = [("solver", "differs by [mm]", "and [deg]")]
    for name, other in fit.closed_forms.items():
        change = X.inverse() @ other
        forms.append(
            (name, f"{1e3 * np.linalg.norm(change.position):.3f}", f"{np.degrees(np.linalg.norm(change.rotvec)):.4f}")
        )
    where = "on the tool (eye in hand)" if result.mounting == "eye_in_hand" else "beside the arm (eye to hand)"
    return CalibrationReport(
        f"Hand-eye calibration of camera {result.camera}, {where}, robot {result.robot}",
        fit.quality,
        {
            f"The camera in the frame {result.parent}": rows,
            "The lens that belongs to it": _lens(fit),
            "OpenCV's closed forms on the same views": forms,
        },
        {
            "Errors of the arm's poses": _arm_errors(fit),
            "If a view is left out; errors of the corners": _left_out(fit),
            **({change_heading(fit.slip.change): change_figure(fit.slip.names, fit.slip.change)} if fit.slip else {}),
        },
    )


def _lens(fit: HandEyeFit) -> list[tuple[str, ...]]:
    """List focal lengths and principal point, as given and as corrected by the arm's motion."""
    lens = fit.result.intrinsics
    sigma = ["not known"] * 4 if lens.sigma is None else [f"{s:.3f}" for s in lens.sigma[:4]]
    numbers = zip(PARAMETERS, fit.given.vector, lens.vector, sigma, strict=False)
    rows = [(f"{n} [px]", f"{before:.3f}", f"{after:.3f}", s) for n, before, after, s in numbers]
    return [("number", "given", "corrected", "sigma"), *rows]


def _arm_errors(fit: HandEyeFit) -> Figure:
    figure = new_figure(11, 3.6)
    position, rotation = figure.subplots(1, 2)
    bars(position, fit.used, 1e3 * np.linalg.norm(fit.errors[:, :3], axis=1), "position [mm]")
    bars(rotation, fit.used, np.degrees(np.linalg.norm(fit.errors[:, 3:], axis=1)), "rotation [deg]")
    return figure


def _left_out(fit: HandEyeFit) -> Figure:
    figure = new_figure(11, 3.6)
    change, corners = figure.subplots(1, 2, width_ratios=(2, 1))
    bars(change, fit.used, 1e3 * np.linalg.norm(fit.leave_one_out[:, :3], axis=1), "the camera moves by [mm]")
    _scatter(corners, np.concatenate(fit.pixel_errors))
    return figure


def _scatter(axes: Axes, errors: np.ndarray) -> None:
    axes.plot(*errors.T, ".", color=BLUE, markersize=2, alpha=0.5)
    limit = 1.1 * float(np.abs(errors).max())
    axes.set(
        xlim=(-limit, limit), ylim=(limit, -limit), xlabel="error in x [px]", ylabel="error in y [px]", aspect="equal"
    )
    axes.axhline(0, color="#999", linewidth=0.6)
    axes.axvline(0, color="#999", linewidth=0.6)
