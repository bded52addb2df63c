"""Target workers: scheduler, KV cache, forward pass, round and engine."""
