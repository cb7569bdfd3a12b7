"""The HTTP API on one machine: API Gateway's routes, limits and payload format 2.0 in front of the functions.

app.py         a request from its arrival to its answer
routing.py     which function a method and path belong to
limits.py      what the cloud's gateway refuses, and in which words
replies.py     a function's reply as an HTTP response
"""
