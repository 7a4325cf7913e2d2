"""Starts and ends nodes: context, executor, signals, and the sentence that an error becomes. Done once, here."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TypeVar

import rclpy
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from robot_rl.arm.control_thread import acting
from robot_rl.errors import (
    CalibrationError,
    CheckpointError,
    ConfigError,
    InterruptedRunError,
    RobotRLError,
    UnknownNameError,
)
from robot_rl.system.process import keep_imports
from robot_rl.teleop.device import DeviceError
from ros_nodes.node.parameter_file import check_names, parameter_files, read_sections

N = TypeVar("N", bound=Node)
SWITCH_INTERVAL = 0.0005
"""How long a thread that receives may keep one that controls waiting for Python's lock [s]; 5 ms is Python's own."""
_WOULD_COME_AGAIN = (CalibrationError, CheckpointError, ConfigError, DeviceError, UnknownNameError)


def run(make: Callable[[], Node], argv: Sequence[str] | None = None) -> int:
    """Run a node until Ctrl-C or SIGTERM; return the exit code.

    Args:
        make: Makes the node, once the context is there.
        argv: Arguments, those after `--ros-args` among them; None takes the process's own.
    """
    keep_imports()
    node = None
    try:
        _check_parameter_files(sys.argv if argv is None else argv)
        rclpy.init(args=list(argv) if argv is not None else sys.argv)
        node = make()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except RobotRLError as error:
        print(f"{node.get_name() if node else 'robot_rl'}: {error}", file=sys.stderr)
        return exit_code(error)
    except RuntimeError:  # RCLError is one: a signal may shut ROS down just when the executor begins to wait
        if rclpy.ok():
            raise
    finally:
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C often comes twice: from the terminal and from a launcher
            if node is not None:
                node.destroy_node()
            rclpy.try_shutdown()
    return 0


def run_job(
    make: Callable[[], N],
    job: Callable[[N, threading.Event], int],
    argv: Sequence[str] | None = None,
    *,
    interrupted: int = 130,
    acts: bool = False,
) -> int:
    """Do a job in the main thread while a thread beside it serves the node's callbacks; return the exit code.

    The node's own threads end before ROS does, not after it.

    Args:
        make: Makes the node, once the context is there.
        job: Gets the node, and what is set when its callbacks are served no more, which only an error makes happen.
            Returns the exit code.
        argv: As in `run`.
        interrupted: The exit code after Ctrl-C or SIGTERM; 0 is for a node that ends in no other way.
        acts: As in `run_with_threads`; of the thread that serves callbacks.
    """
    keep_imports()
    sys.setswitchinterval(SWITCH_INTERVAL)
    name = "robot_rl"
    try:
        _check_parameter_files(sys.argv if argv is None else argv)
        with own_signals(argv):
            node = make()
            name = node.get_name()
            with spinning(node, acts=acts) as ended:
                return job(node, ended)
    except KeyboardInterrupt:
        return interrupted
    except RobotRLError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return interrupted if isinstance(error, InterruptedRunError) else exit_code(error)


def run_with_threads(make: Callable[[], Node], argv: Sequence[str] | None = None, *, acts: bool = False) -> int:
    """Like `run`, for a node whose own threads publish.

    Args:
        make: As in `run`.
        argv: As in `run`.
        acts: The node's threads drive an arm. What makes and serves it then has the priority of a thread that acts: at
            the usual one it would keep them waiting, with Python's lock, while it waits for a processor.
    """

    def wait(node: Node, ended: threading.Event) -> int:
        del node
        ended.wait()
        return 1  # by itself it ends only by an error, which was printed

    with acting() if acts else contextlib.nullcontext():
        return run_job(make, wait, argv, interrupted=0, acts=acts)


def _check_parameter_files(argv: Sequence[str]) -> None:
    """Check the files before ROS reads them: it ends in a traceback where one is malformed."""
    renamed = [argument.partition(":=")[2] for argument in argv if argument.startswith(("__node:=", "__name:="))]
    for path in parameter_files(argv):
        check_names(read_sections(path), renamed[-1] if renamed else None)


def exit_code(error: RobotRLError) -> int:
    """2 after an error that another start would only repeat, else 1."""
    return 2 if isinstance(error, _WOULD_COME_AGAIN) else 1


@contextlib.contextmanager
def own_signals(argv: Sequence[str] | None = None) -> Iterator[None]:
    """ROS without its signal handlers: in the main thread, Ctrl-C and SIGTERM are a `KeyboardInterrupt`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    rclpy.init(args=list(argv) if argv is not None else sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield
    finally:
        rclpy.try_shutdown()


@contextlib.contextmanager
def spinning(node: Node, context: Context | None = None, *, acts: bool = False) -> Iterator[threading.Event]:
    """Serve a node's callbacks in a thread beside the caller, and end both the thread and the node.

    What it gives is set when the thread ends by itself, which only an error makes it do. (A `join` of the thread that
    Ctrl-C interrupts would have Python 3.11 take the thread for ended.)
    """
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    done, ended = threading.Event(), threading.Event()

    def spin() -> None:
        try:
            with acting() if acts else contextlib.nullcontext():
                while not done.is_set():
                    executor.spin_once(timeout_sec=0.1)
        except ExternalShutdownException:
            pass
        finally:
            ended.set()

    thread = threading.Thread(target=spin, name=f"{node.get_name()} executor", daemon=True)
    thread.start()
    try:
        yield ended
    finally:
        done.set()
        executor.wake()
        thread.join()
        executor.shutdown()
        node.destroy_node()


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame  # both signals mean the same
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)  # Ctrl-C often comes twice, and would cut the cleaning up short
    raise KeyboardInterrupt
