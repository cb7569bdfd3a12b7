"""`make deployed`: `larder install` deploys the output of `make build` into ministack.

stack.py           deployments and their results
front.py           the routes of the HTTP API, which the emulator lacks: the local cloud's gateway serves them
cloud.py           all this as a cloud of tests/e2e: CLOUD=deployed runs those tests on it
test_deployment.py the deployment itself: first, repeated, changed, of another version, deleted
"""
