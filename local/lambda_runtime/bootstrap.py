"""The start of an environment, instead of Lambda's /var/runtime/bootstrap.py: the search path, then AWS's client.

It runs by its path under the runtime's Python, which cannot import this repository. As in the cloud, a function finds
only its own folder, its layers and the runtime's packages.
"""

import os
import signal
import sys
import threading


def _end_with_parent() -> None:
    # Standard input ends when the parent does (local/child_processes.py).
    while os.read(0, 1):
        pass
    os._exit(0)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
    sys.path.insert(0, os.environ["LAMBDA_TASK_ROOT"])
    # Imported here, because only this process has the package.
    from awslambdaric.__main__ import main as serve

    serve([os.environ["LAMBDA_TASK_ROOT"], os.environ["_HANDLER"]])


if __name__ == "__main__":
    main()
