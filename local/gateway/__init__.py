"""The HTTP API on one machine: API Gateway's routes, limits and payload format 2.0 in front of the functions.

app.py         handles a request from its arrival to its response
routing.py     finds the function for a method and path
limits.py      the limits of the cloud's gateway, and its error messages
throttle.py    refuses requests above a rate or a number of functions, as AWS does
replies.py     converts a function's reply to an HTTP response
"""
