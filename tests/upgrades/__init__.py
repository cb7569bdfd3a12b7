"""Each version can read the data of released versions."""
