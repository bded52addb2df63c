"""The controller: who is in the cluster, and the metrics of all of it. Imports neither Ray nor torch."""
