"""Leaf package: what every process needs and nothing of ours underneath."""
