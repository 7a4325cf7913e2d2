"""How far labels can be trusted: ground truth, figures, gates, calibration of probabilities."""
