"""What a user may write in cluster.yaml, and the checks of all of it. Imports neither Ray nor torch, and so is fast."""

from outrider_cluster.config.cluster import ClusterConfig

__all__ = ["ClusterConfig"]
