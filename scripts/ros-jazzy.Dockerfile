# robot_rl on Ubuntu 24.04 with ROS 2 Jazzy from apt, for a machine at the arm:
#
#   docker build -f scripts/ros-jazzy.Dockerfile -t robot_rl .
#   docker run -it --net=host --ipc=host -v $PWD/runs:/runs robot_rl robot-rl up sim --task reach
#
# --net=host and --ipc=host: DDS finds the nodes outside, and frames go by shared memory.
FROM ros:jazzy-ros-base

COPY package.xml /ws/src/robot_rl/package.xml
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv libegl1 libgl1 \
    && rosdep install --from-paths /ws/src --ignore-src -y && rm -rf /var/lib/apt/lists/*

# An environment of its own that sees ROS's Python packages: pip may not write into Ubuntu's.
COPY . /ws/src/robot_rl
RUN python3 -m venv --system-site-packages /opt/robot_rl \
    && /opt/robot_rl/bin/pip install --no-cache-dir '/ws/src/robot_rl[sim,calibration,cameras,console,mcap]'

ENV PATH=/opt/robot_rl/bin:$PATH MUJOCO_GL=egl OMP_NUM_THREADS=1
WORKDIR /runs
CMD ["robot-rl", "up", "sim", "--task", "reach"]
