"""One model over several processes: who they are, how a model is split among them, and how they step together."""
