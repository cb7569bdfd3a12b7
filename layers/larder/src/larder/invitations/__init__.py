"""Invitations to teams: create, list, withdraw, accept."""
