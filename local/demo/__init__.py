"""`make demo`: a sample monorepo is built twice with npm's `turbo`, the second time from the cache.

demonstration.py   what happens, step by step, and what the screen says
sample.py          the monorepo
build.mjs          what `npm run build` does in each of its packages
"""
