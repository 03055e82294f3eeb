"""What the programs of this folder share: the library of tests/wire, and how a program ends."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "wire"))
from lib import server, tap  # noqa: E402


def servers_end():
    complaints = server.end_all()
    tap.check(not complaints, "\n".join(complaints))


def main():
    """Runs the registered tests, then stops the servers: a report of a sanitizer fails the program."""
    tap.TESTS.append(tap.Test("the servers ended well", servers_end, 120, "main"))
    status = 1 if tap.main(tap.TESTS) else 0
    sys.stdout.flush()
    server.at_exit()
    os._exit(status)  # threads of tests that hang do not keep us
