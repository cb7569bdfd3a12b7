"""Sign-in with a company's OpenID provider: the providers, and the way to them and back."""
