"""How many replicas each deployment should have: pure decisions, and thin edges to what is observed and to Serve.

The controller decides, since every member tells it all that matters with its heartbeats; Serve's policies only read
what it decided. Imports neither Ray nor torch.
"""
