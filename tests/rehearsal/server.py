"""`python -m tests.rehearsal.server`: ministack with checked permissions, as a process that ends with its parent."""

from local.child_processes import end_with_parent

if __name__ == "__main__":
    end_with_parent()
    from ministack.app import main

    main()
