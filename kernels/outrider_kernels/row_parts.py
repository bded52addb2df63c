"""When a kernel that treats rows one by one shares them out to threads."""

MOST_NUMBERS_OF_ONE_THREAD = 1 << 15
"""Waking another thread costs more than computing this many numbers, once a kernel is vectorised."""
