"""Base policies: they propose chunks of actions, which the policy that learns corrects."""
