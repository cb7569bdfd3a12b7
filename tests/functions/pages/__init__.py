"""Tests of functions/pages: one module for each endpoint."""
