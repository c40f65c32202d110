"""Clients and servers of Python's library, each with what came of it; or, given a URL, what is
there."""

from __future__ import annotations

import asyncio
import json
import multiprocessing.connection
import os
import socket
import socketserver
import sys
import tempfile
import threading
import urllib.request
import xmlrpc.client
import xmlrpc.server

BIG = bytes(range(256)) * 20_000


async def streams() -> object:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readuntil()).upper() + BIG)
        await writer.drain()
        writer.close()

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        writer.write(f"number {number}\n".encode())
        answered = await reader.read(-1)
        writer.close()
        return answered == f"NUMBER {number}\n".encode() + BIG

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    local = await asyncio.start_unix_server(answer, "local")
    found = [
        *[await asyncio.open_connection("127.0.0.1", port) for _ in range(20)],
        *[await asyncio.open_unix_connection("local") for _ in range(20)],
    ]
    said = await asyncio.gather(*[ask(*pair, number) for number, pair in enumerate(found)])
    server.close()
    local.close()
    return said


async def datagrams() -> object:
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    class Echo(asyncio.DatagramProtocol):
        def connection_made(self, transport: object) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, peer: object) -> None:
            self.transport.sendto(data.upper(), peer)

    class Ask(asyncio.DatagramProtocol):
        def __init__(self) -> None:
            self.got: set[str] = set()

        def datagram_received(self, data: bytes, _peer: object) -> None:
            self.got.add(data.decode())
            if len(self.got) == 20:
                done.set_result(sorted(self.got))

    server, _ = await loop.create_datagram_endpoint(Echo, ("127.0.0.1", 0))
    at = server.get_extra_info("sockname")
    connected, _ = await loop.create_datagram_endpoint(Ask, remote_addr=at)
    for number in range(20):
        connected.sendto(f"d{number}".encode())
    return await done


def requests() -> object:
    with xmlrpc.server.SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as server:
        server.register_function(lambda a, b: a * b, "times")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        port = server.server_address[1]
        with xmlrpc.client.ServerProxy(f"http://localhost:{port}") as client:
            found = [client.times(6, 7), client.times("x", 3)]
        server.shutdown()
    return found


def forked() -> object:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(self.rfile.readline().upper())

    with socketserver.ForkingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        found = []
        for number in range(5):
            with socket.create_connection(server.server_address, timeout=30) as client:
                client.sendall(f"n{number}\n".encode())
                found.append(client.makefile().readline())
        server.shutdown()
    return found


def objects() -> object:
    """Also by a name without a file, and with descriptors behind it."""
    found = []
    for address in ("objects", f"\0sigwrap-test-{os.getpid()}", ("localhost", 0)):
        with multiprocessing.connection.Listener(address, authkey=b"x") as listener:
            at = listener.address
            if os.fork() == 0:
                with multiprocessing.connection.Client(at, authkey=b"x") as client:
                    client.send({"n": 7, "big": BIG})
                os._exit(0)
            with listener.accept() as connection:
                told = connection.recv()
            os.wait()
            found.append([told["n"], told["big"] == BIG])
    return found


def log_records() -> object:
    """To a syslog of its own."""
    import logging.handlers

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind("log")
        handler = logging.handlers.SysLogHandler("log")
        for number in range(3):
            handler.handle(logging.LogRecord("x", 20, "", 0, f"said {number}", (), None))
        return [server.recv(1000).decode() for _ in range(3)]


def main() -> None:
    if sys.argv[1:]:
        with urllib.request.urlopen(sys.argv[1], timeout=30) as answer:
            sys.stdout.write(answer.read().decode())
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = {
            "streams": asyncio.run(streams()),
            "datagrams": asyncio.run(datagrams()),
            "requests": requests(),
            "forked": forked(),
            "objects": objects(),
            "log_records": log_records(),
        }
    print(json.dumps(found))


main()
