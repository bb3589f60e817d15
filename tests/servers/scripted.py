"""A server that says over a Redis' line what it is told to."""

import socket
import threading

from marlow.clock import real_sleep

OLD = b"-ERR syntax error\r\n"  # what a Redis before 7.0 makes of GET beside NX


class Scripted:
    """Answers each question with the next of its answers; one in pieces goes out piece by piece. After `b""`, and
    after the last, it hangs up.
    """

    def __init__(self, answers: tuple[bytes | tuple[bytes, ...], ...]) -> None:
        self.answers, self.asked = list(answers), list[bytes]()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listening.getsockname()[1]}/0"
        self.thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "Scripted":
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.answers.clear()
        self.listening.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listening.close()

    def _serve(self) -> None:
        while True:
            try:
                call, _ = self.listening.accept()
            except OSError:
                return
            with call:
                self._converse(call)

    def _converse(self, call: socket.socket) -> None:
        while self.answers and call.recv(4096):
            pieces = self.answers.pop(0)
            for piece in (pieces,) if isinstance(pieces, bytes) else pieces:
                if not piece:
                    return
                call.sendall(piece)
                real_sleep(0.05)
