"""Tokens for `turbo login`: keys for artifacts, and the codes that are exchanged for them."""
