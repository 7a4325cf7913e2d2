"""A UR5e as MJCF: masses, inertias and lengths as Universal Robots publishes them."""

UR5E = """
<mujoco model="ur5e">
  <compiler angle="degree" autolimits="true"/>
  <default><joint axis="0 1 0" range="-360 360" armature="0.1" damping="1"/><geom type="capsule" mass="0"/></default>
  <worldbody>
    <light pos="0 0 3"/>
    <body name="base" quat="0 0 0 -1">
      <body name="shoulder" pos="0 0 0.163">
        <inertial mass="3.7" pos="0 0 0" diaginertia="0.0102675 0.0102675 0.00666"/>
        <joint name="pan" axis="0 0 1"/>
        <body name="upper" pos="0 0.138 0" quat="1 0 1 0">
          <inertial mass="8.393" pos="0 0 0.2125" diaginertia="0.133886 0.133886 0.0151074"/>
          <joint name="lift"/> <geom fromto="0 0 0 0 0 0.425" size="0.05"/>
          <body name="fore" pos="0 -0.131 0.425">
            <inertial mass="2.275" pos="0 0 0.196" diaginertia="0.0311796 0.0311796 0.004095"/>
            <joint name="elbow" range="-180 180"/> <geom fromto="0 0 0 0 0 0.392" size="0.04"/>
            <body name="wrist1" pos="0 0 0.392" quat="1 0 1 0">
              <inertial mass="1.219" pos="0 0.127 0" diaginertia="0.0025599 0.0025599 0.0021942"/>
              <joint name="wrist1"/>
              <body name="wrist2" pos="0 0.127 0">
                <inertial mass="1.219" pos="0 0 0.1" diaginertia="0.0025599 0.0025599 0.0021942"/>
                <joint name="wrist2" axis="0 0 1"/>
                <body name="wrist3" pos="0 0 0.1">
                  <inertial mass="0.1889" pos="0 0.0771683 0" diaginertia="0.000132134 9.90863e-05 9.90863e-05"/>
                  <joint name="wrist3"/>
                  <site name="attachment_site" pos="0 0.1 0" quat="-1 1 0 0"/>
  </body></body></body></body></body></body></body></worldbody>
  <actuator>
    <general joint="pan" gainprm="2000" biasprm="0 -2000 -400" biastype="affine" forcerange="-150 150"/>
    <general joint="lift" gainprm="2000" biasprm="0 -2000 -400" biastype="affine" forcerange="-150 150"/>
    <general joint="elbow" gainprm="2000" biasprm="0 -2000 -400" biastype="affine" forcerange="-150 150"/>
    <general joint="wrist1" gainprm="500" biasprm="0 -500 -100" biastype="affine" forcerange="-28 28"/>
    <motor joint="wrist2" ctrlrange="-28 28"/>
    <motor joint="wrist3" ctrlrange="-14 14" gear="2"/>
  </actuator>
  <keyframe><key name="home" qpos="-1.5708 -1.5708 1.5708 -1.5708 -1.5708 0"/></keyframe>
</mujoco>
"""
