"""What crosses topics: names, QoS profiles, conversions, messages of a task."""
