"""Serve's replicas: each makes one plain object, starts it, keeps it announced, and stops it. They decide nothing."""
