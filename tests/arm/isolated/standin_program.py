"""The program of the arm in memory, for tests of what runs it."""

from robot_rl.arm.isolated.driver_server import serve
from robot_rl.arm.standin.standin_arm import StandinArm

if __name__ == "__main__":
    serve(StandinArm)
