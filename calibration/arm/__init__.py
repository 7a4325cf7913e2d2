"""What is measured of the arm: delays, wrench sensor, friction and stiffness."""
