"""Leader arms: devices whose pose, not their deflection, is what the arm shall take."""
