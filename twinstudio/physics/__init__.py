"""The engines: the PyBullet twin, the MuJoCo emulated cell, and roll-outs of either."""
