"""What connect() says when there is no daemon, and a client that is closed."""

import contextlib
import os
import pathlib
import re
import socket
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

from kiln import KilnError, PlanError, connect, daemon
from kiln.client import PROTOCOL, Client


class ConnectTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        environment = mock.patch.dict(os.environ, XDG_STATE_HOME=folder.name)
        environment.start()
        self.addCleanup(environment.stop)

    def refuse(self, kilnd, message):
        with self.assertRaisesRegex(KilnError, message) as caught:
            connect(str(self.folder / "kilnd.sock"), kilnd=str(kilnd))
        self.assertEqual(caught.exception.code, "UNAVAILABLE")

    def program(self, script):
        path = self.folder / "kilnd"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def test_a_daemon_that_exits_is_not_waited_for(self):
        log = self.folder / "kiln" / "kilnd.log"
        log.parent.mkdir()
        log.write_text("what another daemon said\n")
        began = time.monotonic()
        self.refuse(self.program("echo no such cache folder; exit 3"),
                    r"exits \(3\) and nobody answers on .*\. End of its log, "
                    r".*/kiln/kilnd\.log:\nno such cache folder$")
        self.assertLess(time.monotonic() - began, 8)

    def test_a_daemon_that_loses_the_race_leaves_the_socket_to_the_winner(self):
        lost = self.program("exit 1")
        with mock.patch("kiln.daemon.refusal", side_effect=[
                "nobody", "nobody", "nobody", None]), mock.patch("kiln.client.Client"):
            connect(str(self.folder / "kilnd.sock"), kilnd=str(lost))

    def test_a_daemon_that_is_no_program(self):
        self.refuse("/nope/kilnd",
                    "/nope/kilnd cannot be started: No such file")
        plain = self.program("exit 0")
        plain.chmod(0o644)
        self.refuse(plain, "cannot be started: Permission denied")

    def test_a_path_that_is_too_long(self):
        with self.assertRaisesRegex(
                KilnError, r"^INVALID_ARGUMENT: The socket path .*got 108 "
                r"bytes, allowed: 1 to 107"):
            connect("/" + 107 * "x", kilnd="/nope/kilnd")

    def test_no_daemon_where_none_may_be_started(self):
        with self.assertRaisesRegex(
                KilnError, "^UNAVAILABLE: No kilnd answers on .*/kilnd.sock: "
                "No such file or directory$"):
            connect(self.folder / "kilnd.sock", auto_start=False)

    def test_a_log_that_cannot_be_opened(self):
        (self.folder / "kiln").write_text("a file where a folder should be")
        self.refuse(self.program("exit 0"), "kilnd.log cannot be opened")


# Prevents a client that waits for ever for a daemon that hangs.
class BusySocketTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "kilnd.sock"
        self.listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.listener.close)
        self.listener.bind(str(self.path))

    def test_a_full_queue_is_named_with_the_time_waited(self):
        self.listener.listen(0)
        # The first leaves the queue full, which gRPC finds so; then it is so.
        for _ in range(2):
            with mock.patch("kiln.daemon._CONNECT_TIMEOUT_S", 0.2):
                with self.assertRaisesRegex(
                        KilnError, "^DEADLINE_EXCEEDED: kilnd on "
                        ".*/kilnd.sock does not accept connections: its queue "
                        r"stays full \(waited 0\.2 s\)"):
                    connect(self.path, kilnd="/nope/kilnd")

    def test_a_daemon_that_hangs_up_says_which_limits_there_are(self):
        self.listener.listen(8)

        def hang_up():
            with contextlib.suppress(OSError):  # once it is shut down
                while True:
                    self.listener.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.listener.shutdown, socket.SHUT_RDWR)
        with self.assertRaisesRegex(
                KilnError, "^UNAVAILABLE: The kilnd on .*/kilnd.sock takes the "
                r"connection and closes it at once: .*--max-connections.*\)$"):
            connect(self.path)

    def test_no_answer_is_waited_for_longer_than_a_greeting_takes(self):
        self.listener.listen(8)
        with mock.patch("kiln.client._GREETING_TIMEOUT_S", 0.2):
            with self.assertRaisesRegex(
                    KilnError, "^DEADLINE_EXCEEDED: kilnd on .*/kilnd.sock "
                    "does not answer the GetServerInfo before the call's "
                    r"deadline \(0\.2 s\)$"):
                connect(self.path)


# Prevents a daemon that is started only to fail: /nope/kilnd would say so.
class OwnerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def refuse(self, path, message):
        with self.assertRaisesRegex(
                KilnError, f"^PERMISSION_DENIED: The socket {path} cannot be "
                f"used by .*uid [0-9]+.*: {message}"):
            connect(path, kilnd="/nope/kilnd")

    def as_another_user(self):
        return mock.patch("os.geteuid", return_value=os.geteuid() + 4711)

    def test_the_folder_of_another_user(self):
        owner = f"(uid {os.geteuid()})"
        with self.as_another_user():
            self.refuse(self.folder / "kilnd.sock", re.escape(
                f"its folder {self.folder} (mode 0700) belongs to ") + ".*"
                + re.escape(f"{owner}; each user has a daemon of their own: "
                            "choose another socket (connect(socket=...), "
                            "KILN_SOCKET)"))

    def test_the_daemon_of_another_user(self):
        path = self.folder / "kilnd.sock"
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(path))
        listener.listen(8)
        with self.as_another_user():
            self.refuse(path, "its daemon belongs to .*each user has")

    def test_a_folder_that_refuses_is_named_with_its_mode(self):
        closed = self.folder / "closed"
        closed.mkdir(mode=0)
        if os.geteuid() == 0:  # whom no mode stops
            self.folder.chmod(0o711)
            os.seteuid(65534)
            self.addCleanup(os.seteuid, 0)
        self.refuse(closed / "deeper" / "kilnd.sock", re.escape(
            f"{closed} (mode 0000) belongs to "))


class CompileTest(unittest.TestCase):
    def test_arguments_that_are_no_strings_are_named(self):
        server = types.SimpleNamespace(protocol=PROTOCOL)
        with mock.patch.object(Client, "call", return_value=server):
            client = Client("/nope/kilnd.sock")
        self.addCleanup(client.close)
        plan = "input x: f32[4]\noutput x"
        for field, arguments in [("target", {"target": ["cpu"]}),
                                 ("variant", {"variant": 1}),
                                 ("grade", {"grade": ["fp32"]})]:
            with self.assertRaisesRegex(PlanError, f"{field}: is not a"):
                client.compile(plan, **{"target": "cpu", **arguments})


class ClosedClientTest(unittest.TestCase):
    def test_it_says_that_it_is_closed(self):
        server = types.SimpleNamespace(protocol=PROTOCOL)
        with mock.patch.object(Client, "call", return_value=server):
            client = Client("/nope/kilnd.sock")
        client.close()
        for use in (client.info, client.attach,
                    lambda: client.compile("input x: f32[4]\noutput x", "cpu")):
            with self.assertRaisesRegex(KilnError, "The client is closed"):
                use()


if __name__ == "__main__":
    unittest.main()
