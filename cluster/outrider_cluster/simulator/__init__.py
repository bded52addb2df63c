"""Discrete-event simulation of a cluster, with the live policies inside."""
