"""Several servers on one PostgreSQL: processes, proxies, faults, clients, and the check of what the clients saw."""
import os
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/wire"))  # its `lib`: the server, HTTP, A2A, TAP
