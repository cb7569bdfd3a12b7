"""The JSON bodies that requests send, parsed and checked."""
