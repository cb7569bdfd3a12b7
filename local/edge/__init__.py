"""The edge: a stand-in for the CloudFront distribution, on a port of its own in the process of the bucket.

engine.py   runs the functions that are deployed, in QuickJS
events.py   the events that CloudFront gives them, and the changes that it accepts
app.py      the application: from the client's request to the bucket and back
store.py    the key-value store, and the states in which the edge behaves as a distribution might
files.py    the folder of both, and of the key that functions sign with

docs/edge.md#the-local-edge describes how it differs from CloudFront.
"""
