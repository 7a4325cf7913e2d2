"""Advice on when to call a person: rules that predict failure while an episode runs, and how well they do."""
