"""Owners of artifacts: teams with their members, and users acting for themselves."""
