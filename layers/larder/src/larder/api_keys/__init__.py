"""API keys: create, verify with one conditional write, revoke."""
