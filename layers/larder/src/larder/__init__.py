"""Larder: a remote build cache that a team owns. This package is the layer that every function shares."""
