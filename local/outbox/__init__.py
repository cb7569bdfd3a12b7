"""Show sent mail on this machine at `/_local/outbox`. This is not part of a deployment."""
