from __future__ import annotations

from sigwrap.bare import TYPE_CHECKING

if TYPE_CHECKING:
    from socket import *  # noqa: F403
    from socket import recv_fds as recv_fds
    from socket import send_fds as send_fds
else:
    import _socket
    import struct
    from _socket import *  # noqa: F403
    from _socket import CMSG_SPACE, SCM_RIGHTS, SOL_SOCKET

    class socket(_socket.socket):  # noqa: N801
        __slots__ = ()

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.close()

        def accept(self):
            fd, address = self._accept()
            return socket(fileno=fd), address

    def socketpair(*kind):
        return tuple(socket(fileno=each.detach()) for each in _socket.socketpair(*kind))

    def send_fds(sock, buffers, fds, flags=0):
        packed = struct.pack(f"{len(fds)}i", *fds)
        return sock.sendmsg(buffers, [(SOL_SOCKET, SCM_RIGHTS, packed)], flags)

    def recv_fds(sock, size, most, flags=0):
        data, ancillary, flags, address = sock.recvmsg(size, CMSG_SPACE(4 * most), flags)
        fds = []
        for level, kind, packed in ancillary:
            if (level, kind) == (SOL_SOCKET, SCM_RIGHTS):
                count = len(packed) // 4
                fds += struct.unpack(f"{count}i", packed[: 4 * count])
        return data, fds, flags, address
