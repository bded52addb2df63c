"""Model folders: where they come from, whether we load them, and loading. Only loading and shards need torch."""
