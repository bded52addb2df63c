"""Draft workers: proposers, sessions and the gRPC server that hosts them."""
