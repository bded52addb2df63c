"""The only code that touches generated protobuf types."""
