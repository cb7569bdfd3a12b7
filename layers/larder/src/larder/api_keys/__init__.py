"""API keys: made, verified in one conditional write, revoked."""
