"""Invitations to teams: made, listed, withdrawn, accepted once."""
