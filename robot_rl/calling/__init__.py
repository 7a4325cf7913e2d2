"""Calling a person while a policy acts: rules that predict its failure, the advisor that watches, and the call."""
