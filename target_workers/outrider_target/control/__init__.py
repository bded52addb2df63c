"""How deep to speculate, decided from measurements. Pure: no torch, no network, no thread; time is an argument."""
