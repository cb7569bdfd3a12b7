"""OWASP's ten API security risks (2023), one file for each. docs/security.md lists them and related tests."""
