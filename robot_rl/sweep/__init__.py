"""Choice of settings: a space, trials that are runs, halving, and the check of the best on other seeds."""
