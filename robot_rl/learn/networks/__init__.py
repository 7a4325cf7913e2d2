"""Networks: encoders, heads, policy and critics."""
