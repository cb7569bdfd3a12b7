"""Issuers of id tokens: which are accepted, their keys, and the verification of what they have signed."""
