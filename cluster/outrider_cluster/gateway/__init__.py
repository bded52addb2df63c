"""The door for clients: OpenAI's HTTP API and gRPC in front of target replicas. Stateless; imports no torch."""
