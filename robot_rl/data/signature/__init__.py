"""Signatures over episode stores: whoever changes one without the lab's key is found out."""
