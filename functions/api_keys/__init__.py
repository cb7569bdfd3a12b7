"""API keys: one module an endpoint. Each holds one function and the `handler` that Lambda calls."""
