"""`python -m tests.deployed.dying N COMMAND...`: run `larder`, and kill the process after its Nth call to AWS.

With LOST=1, only the reply of that call is lost: boto3 sends it again.
"""

import os
import signal
import sys
from typing import Any

from botocore.exceptions import ConnectionClosedError
from botocore.httpsession import URLLib3Session

from larder_cli.main import cli


def main() -> None:
    left = int(sys.argv[1])
    send = URLLib3Session.send

    def counted(self: Any, request: Any) -> Any:
        nonlocal left
        reply = send(self, request)
        left -= 1
        if left == 0 and "LOST" in os.environ:
            raise ConnectionClosedError(endpoint_url=request.url)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return reply

    URLLib3Session.send = counted  # type: ignore[method-assign]
    cli(sys.argv[2:], prog_name="larder")


if __name__ == "__main__":
    main()
