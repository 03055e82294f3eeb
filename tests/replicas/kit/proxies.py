"""TCP proxies with faults, and a balancer. All run on one event loop, in a thread of this process."""
import asyncio
import socket
import struct
import threading

CONNECT = 1.0  # seconds until a target counts as gone


class Wire:
    """The event loop of all proxies."""
    loop = None

    @classmethod
    def start(cls):
        if cls.loop is None:
            cls.loop = asyncio.new_event_loop()
            threading.Thread(target=cls.loop.run_forever, daemon=True).start()
        return cls.loop

    @classmethod
    def call(cls, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, cls.start()).result(30)


class Proxy:
    """Listens on a free port of 127.0.0.1 and connects to its target."""

    def __init__(self, *targets):
        self.targets, self.next = list(targets), 0
        self.open, self.delay, self.port, self.listener = {}, 0.0, 0, None
        Wire.call(self.listen())

    async def listen(self):
        if self.port == 0:
            self.flows = asyncio.Event()
            self.flows.set()
        if self.listener is None:
            self.listener = await asyncio.start_server(self.accept, "127.0.0.1", self.port, limit=1 << 20)
            self.port = self.listener.sockets[0].getsockname()[1]

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    async def connect(self):
        """The next target that accepts a connection: a server that is not there is passed over."""
        for _ in range(len(self.targets)):
            target = self.targets[self.next % len(self.targets)]
            self.next += 1
            try:
                return await asyncio.wait_for(asyncio.open_connection(*target, limit=1 << 20), CONNECT)
            except (OSError, asyncio.TimeoutError):
                continue
        return None

    async def accept(self, reader, writer):
        pair = [writer]
        self.open[id(pair)] = pair
        try:
            await self.flows.wait()
            other = await self.connect()
            if other is None:
                return
            pair.append(other[1])
            await asyncio.gather(self.pump(reader, other[1]), self.pump(other[0], writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self.open.pop(id(pair), None)
            for w in pair:
                w.transport.abort()

    async def pump(self, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self.flows.wait()
                writer.write(data)
                await writer.drain()
            await self.flows.wait()
            if writer.can_write_eof():
                writer.write_eof()
        except OSError:
            writer.transport.abort()

    # -- faults; each may be called from any thread

    def cut(self):
        """No byte passes any more, and no connection ends: as a network that is cut."""
        Wire.start().call_soon_threadsafe(self.flows.clear)

    def heal(self):
        self.delay = 0.0
        Wire.start().call_soon_threadsafe(self.flows.set)
        Wire.call(self.listen())

    def reset(self):
        """RST on every connection; new ones are accepted."""
        Wire.call(self.abort_all())

    async def abort_all(self):
        for pair in list(self.open.values()):
            for w in pair:
                s = w.get_extra_info("socket")
                if s is not None and s.fileno() >= 0:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                w.transport.abort()

    def refuse(self):
        """RST on every connection, and the port is closed: as a machine whose program is gone. libpq tries its next host then."""
        async def end():
            if self.listener:
                self.listener.close()
                self.listener = None
            await self.abort_all()
        Wire.call(end())

    close = refuse


class Balancer(Proxy):
    """Round robin over the servers; one that refuses the connection is passed over. It knows nothing else about them."""
