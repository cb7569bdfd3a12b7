"""HTTP: the resolver, who is calling, what they sent, what they get back."""
