"""Find the principal of a request, and check what they may do (docs/decisions/handlers.md#principals)."""
