"""`python -m tests.emulator.server`: ministack with checked permissions, as a process that ends with its parent."""

from local.child_processes import end_with_parent
from tests.emulator.aws_behaviour import install

if __name__ == "__main__":
    end_with_parent()
    install()
    from ministack.app import main

    main()
