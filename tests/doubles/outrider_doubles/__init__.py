"""Doubles that tests of several parts share: small, typed, and tested like the rest."""
