"""Usage figures that clients report: hits, misses and saved time."""
