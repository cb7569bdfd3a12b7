"""Usage: one module an endpoint, each with the `handler` that Lambda calls."""
