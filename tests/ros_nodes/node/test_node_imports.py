"""Nodes beside the robot start fast and small: only those that act or learn import torch (1.5 s and 200 MB each)."""

import subprocess
import sys

ACT_OR_LEARN = {"actor_node", "learner_node"}
PROGRAM = """
import importlib, pkgutil, sys, ros_nodes.nodes
for module in pkgutil.iter_modules(ros_nodes.nodes.__path__):
    if module.name not in sys.argv[1:]:
        importlib.import_module(f"ros_nodes.nodes.{module.name}")
        assert "torch" not in sys.modules, module.name
"""


def test_nodes_that_neither_act_nor_learn_do_without_torch():
    done = subprocess.run([sys.executable, "-c", PROGRAM, *ACT_OR_LEARN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
