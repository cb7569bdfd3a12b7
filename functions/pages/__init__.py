"""Pages, and what they and `turbo login` ask for: one module an endpoint, each with the `handler` that Lambda calls."""
