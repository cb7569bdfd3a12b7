"""OWASP's ten risks of APIs (2023), one file each. docs/security.md lists them, and tests elsewhere."""
