"""Requests and replies of `turbo login`."""
