"""The command line: `outrider serve | deploy | validate | status`. The only part that reads the environment."""
