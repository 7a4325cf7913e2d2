"""Validation of labels and classifiers: ground truth, figures, gates, calibration of probabilities."""
