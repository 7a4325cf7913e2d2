"""A base policy by itself: trained from a store of demonstrations, and evaluated alone."""
