"""What `make build` made, deployed as a whole by `sam deploy` into ministack: `make deployed`.

emulator.py        ministack as a process of its own, on Lambda's version of Python
stack.py           `sam deploy` and `sam delete`, and what came of them
front.py           the HTTP API's routes, which the emulator does not take: filled in by the local cloud's gateway
cloud.py           all that as a cloud of tests/e2e: CLOUD=deployed runs those tests on it
test_deployment.py the deployment itself: first, again, changed, of another version, deleted
"""
