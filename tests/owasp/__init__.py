"""OWASP's ten risks of APIs (2023), one file each. docs/security.md lists them, with what other tests belong to them."""
