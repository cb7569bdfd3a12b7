"""The local cloud: what `make serve` starts."""
