"""The verifier's side of the round protocol: links to draft workers, sessions on them, and usable proposals."""
