"""A chain of joints as a MuJoCo model: an independent computation of its kinematics, and physics for peers."""

import mujoco
import numpy as np


def chain_spec(chain):
    """Return the model of a chain with points of mass between its joints, and a site `tcp`."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    body = spec.worldbody
    for joint in chain.joints:
        body = body.add_body(name=joint.name, pos=joint.origin.position, quat=joint.origin.quaternion)
        kind = mujoco.mjtJoint.mjJNT_SLIDE if joint.slides else mujoco.mjtJoint.mjJNT_HINGE
        body.add_joint(name=joint.name, type=kind, axis=joint.axis)
        body.mass, body.inertia, body.explicitinertial = 0.1, (1e-4, 1e-4, 1e-4), True
    body.add_site(name="tcp", pos=chain.tool.position, quat=chain.tool.quaternion)
    return spec


def forward(model, data, position):
    """Return position, rotation matrix and Jacobian of the tcp."""
    data.qpos[: len(position)] = position
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    J = np.zeros((6, model.nv))
    mujoco.mj_jacSite(model, data, J[:3], J[3:], model.site("tcp").id)
    return data.site("tcp").xpos.copy(), data.site("tcp").xmat.reshape(3, 3).copy(), J
