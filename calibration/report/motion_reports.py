"""Reports of time offsets, wrench calibrations and simulated arms."""

from __future__ import annotations

import numpy as np

from calibration.arm.arm_identification import PARAMETERS, UNITS, ArmFit
from calibration.arm.time_offset import TimeOffsetFit
from calibration.arm.wrench import WrenchFit
from calibration.report.change_figure import change_figure, change_heading
from calibration.report.report import CalibrationReport, bars, new_figure
from robot_rl.viz.learning_curve import BLUE, GREEN, ORANGE


def time_offset_report(fit: TimeOffsetFit) -> CalibrationReport:
    """Make the report of a time offset: the search over delays, and the residuals before and after."""
    figure = new_figure(11, 3.8)
    search, errors = figure.subplots(1, 2, width_ratios=(1, 1.6))
    search.plot(1e3 * fit.search[:, 0], 1e3 * fit.search[:, 1], color=BLUE)
    search.axvline(1e3 * fit.result.delay, color=GREEN, linestyle="--", label="the delay")
    search.legend()
    search.set(xlabel="delay [ms]", ylabel="spread of the board's position [mm]", ylim=(0, None))
    seconds = (fit.stamps - fit.stamps[0]) / 1e9
    for values, colour, label in ((fit.errors_before, ORANGE, "without delay"), (fit.errors, BLUE, "with the delay")):
        errors.plot(
            seconds, 1e3 * np.linalg.norm(values[:, :3], axis=1), ".-", color=colour, label=label, linewidth=0.8
        )
    errors.set(xlabel="time [s]", ylabel="picture against arm [mm]", ylim=(0, None))
    errors.legend()
    title = f"Delay of camera {fit.result.camera} against robot {fit.result.robot}"
    return CalibrationReport(title, fit.quality, {}, {"Search and residuals": figure})


def wrench_report(fit: WrenchFit) -> CalibrationReport:
    """Make the report of a wrench calibration: parameters with uncertainty, and residuals on held-out poses."""
    result = fit.result
    sigma = np.sqrt(np.diag(np.array(result.covariance)))
    names = ("fx", "fy", "fz", "tx", "ty", "tz")
    units = ("N", "N", "N", "Nm", "Nm", "Nm")
    rows = [("number", "value", "sigma")]
    rows += [
        (f"bias {name} [{unit}]", f"{value:.4f}", f"{s:.2g}")
        for name, unit, value, s in zip(names, units, result.bias, sigma[:6], strict=True)
    ]
    rows.append(("mass [kg]", f"{result.mass:.5f}", f"{sigma[6]:.2g}"))
    rows += [
        (f"centre of mass {axis} [mm]", f"{1e3 * value:.3f}", f"{1e3 * s:.2g}")
        for axis, value, s in zip("xyz", result.center_of_mass, sigma[7:], strict=True)
    ]
    figure = new_figure(11, 3.6)
    force, torque = figure.subplots(1, 2)
    poses = [str(i + 1) for i in np.flatnonzero(fit.used)]
    bars(force, poses, np.linalg.norm(fit.held_out[:, :3], axis=1), "force residual [N]", of="row of the table")
    bars(torque, poses, np.linalg.norm(fit.held_out[:, 3:], axis=1), "torque residual [Nm]", of="row of the table")
    return CalibrationReport(
        f"Wrench sensor and tool of robot {result.robot}",
        fit.quality,
        {"Sensor and tool": rows},
        {
            "Each pose, predicted from the others": figure,
            **(
                {change_heading(fit.fault.change): change_figure(fit.fault.names, fit.fault.change)}
                if fit.fault
                else {}
            ),
        },
    )


def simulated_arm_report(fit: ArmFit) -> CalibrationReport:
    """Make the report of a simulated arm: settings with uncertainty, errors of each motion, and one motion in full."""
    sigma = np.sqrt(np.diag(np.array(fit.result.covariance)))
    found = [getattr(fit.result.settings, name) for name in PARAMETERS]
    rows = [("setting", "before", "found", "sigma")]
    rows += [
        (f"{name} [{unit}]", f"{before:.4g}", f"{value:.4g}", f"{s:.2g}")
        for name, unit, before, value, s in zip(PARAMETERS, UNITS, fit.before, found, sigma, strict=True)
    ]
    errors = new_figure(11, 3.6)
    axes = errors.subplots(1, 2)
    places = np.arange(len(fit.names))
    for part, (axis, scale, label) in enumerate(
        zip(axes, (1e3, 180.0 / np.pi), ("position, rms [mm]", "rotation, rms [deg]"), strict=True)
    ):
        axis.bar(places - 0.2, scale * fit.errors_before[:, part], 0.4, color=ORANGE, label="before")
        axis.bar(places + 0.2, scale * fit.errors[:, part], 0.4, color=BLUE, label="after")
        for place in places[fit.held_out]:
            axis.axvspan(place - 0.5, place + 0.5, color=GREEN, alpha=0.15, linewidth=0, zorder=0)
        axis.set(xlabel="motion (green: held out)", ylabel=label)
    axes[0].legend()
    motion = new_figure(11, 3.4)
    measured, before, after = 1e3 * (fit.example - fit.example[0, 0])
    for name, axis, column in zip("xyz", motion.subplots(1, 3), range(3), strict=True):
        axis.plot(fit.example_seconds, measured[:, column], ".", color="black", label="measured")
        axis.plot(fit.example_seconds, before[:, column], color=ORANGE, label="before")
        axis.plot(fit.example_seconds, after[:, column], color=BLUE, label="after")
        axis.set(xlabel="time [s]", ylabel=f"{name} of the tcp [mm]")
    motion.axes[0].legend()
    return CalibrationReport(
        f"Simulated arm of robot {fit.result.robot}",
        fit.quality,
        {"Settings": rows},
        {"Each motion, played back": errors, "The held-out motion that was worst before": motion},
    )
