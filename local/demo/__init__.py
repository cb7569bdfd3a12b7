"""`make demo`: build a sample monorepo twice with npm's `turbo`, the second time from the cache.

demonstration.py   the steps and their output
sample.py          the monorepo
build.mjs          the build script of its packages
"""
