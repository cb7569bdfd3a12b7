"""Accounts: one module an endpoint or background function, each with the `handler` that Lambda calls."""
