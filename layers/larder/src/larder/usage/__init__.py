"""What the clients report: hits, misses and the time that the cache saved."""
