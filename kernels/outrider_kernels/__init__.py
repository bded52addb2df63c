"""Verification, sampling and attention kernels over plain torch."""
