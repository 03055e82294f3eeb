"""The client library of the wire suites: plain sockets, both versions of A2A, strict about everything."""
