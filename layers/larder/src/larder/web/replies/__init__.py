"""The JSON that clients get back."""
