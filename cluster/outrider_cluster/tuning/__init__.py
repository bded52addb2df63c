"""Finds depths for a cluster by trying them: load by depth by pool."""
