"""API keys: create, verify, count their uses, revoke."""
