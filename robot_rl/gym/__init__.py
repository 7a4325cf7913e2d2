"""Our tasks for learners of others: `import robot_rl.gym` registers each with gymnasium as `robot_rl/<task>-v0`.

Those of other packages too, as found in the entry point group `robot_rl.tasks`. Nothing of them is imported yet.
"""

import gymnasium

from robot_rl.env.registry import task_names

for _name in task_names():
    gymnasium.register(f"robot_rl/{_name}-v0", entry_point="robot_rl.gym.task_env:TaskEnv", kwargs={"task": _name})
