"""The query parameters that list or filter, parsed and checked."""
