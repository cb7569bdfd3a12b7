"""Tests of functions/pages: one module an endpoint."""
