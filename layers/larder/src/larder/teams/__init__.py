"""Owners of artifacts: teams with their members, and users without a team."""
