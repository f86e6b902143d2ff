"""Who may talk to the daemon, and what happens when two daemons want one place (R90, R91)."""

import grp
import os
import pwd
import socket
import stat
import subprocess
import threading
import time

import clients
import oracle
from daemon import Daemon
from harness import (MIB, PATIENCE, Skip, check, equal, need_programs, need_root, parametrize,
                     wait_until)

SMALL = 96 * MIB


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def refused_start(case, daemon, *extra, status=None, command=None):
    """A daemon that must not come up: (exit status, what it said)."""
    command = [str(part) for part in command or daemon.command(extra)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE,
                          check=False, stdin=subprocess.DEVNULL)
    case.note(f"$ {' '.join(command)}: {done.returncode} {done.stderr}")
    check(done.returncode not in (0,) and done.returncode > 0, f"it came up: {done.returncode}")
    if status is not None:
        equal(done.returncode, status, "exit status")
    check("ready" not in done.stdout, "it said that it is ready")
    return done.returncode, done.stderr


@parametrize(0o000, 0o022, 0o077)
def test_modes(case, mask):
    """The sockets' modes do not depend on the umask; nothing is open to others."""
    old = os.umask(mask)
    try:
        daemon = Daemon(case).start()
    finally:
        os.umask(old)
    for path in (daemon.socket, daemon.readonly_socket, daemon.nbd_socket):
        check(stat.S_ISSOCK(os.stat(path).st_mode), f"{path} is no socket")
        equal(oct(mode_of(path)), oct(0o660), f"mode of {path.name}")
    mode = mode_of(daemon.state)
    check(mode & 0o007 == 0, f"mode of the state folder: {oct(mode)}")


def test_socket_group(case):
    need_root()
    group = next((entry for entry in grp.getgrall()
                  if entry.gr_name in ("disk", "users", "daemon")), None)
    if group is None:
        raise Skip("no group to give the sockets to")
    daemon = Daemon(case).start(["--socket-group", group.gr_name])
    for path in (daemon.socket, daemon.readonly_socket, daemon.nbd_socket):
        equal(os.stat(path).st_gid, group.gr_gid, f"group of {path.name}")
    daemon.stop()
    code, text = refused_start(case, daemon, "--socket-group", "no-such-group")
    check("no-such-group" in text, f"status {code}: {text}")


def test_outsider_is_refused(case):
    need_root()
    need_programs("setpriv")
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise Skip("no user nobody") from None
    daemon = Daemon(case).start()
    # Everything on the way is open, so that only the sockets themselves can refuse.
    for folder in (case.directory, daemon.directory):
        folder.chmod(0o755)
    for path in (daemon.socket, daemon.readonly_socket, daemon.nbd_socket):
        script = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\n"
                  "try: s.connect(sys.argv[1])\n"
                  "except PermissionError: sys.exit(7)\n")
        done = case.run(["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}",
                         "--clear-groups", "/usr/bin/python3", "-c", script, path], status=None)
        equal(done.returncode, 7, f"connecting to {path.name} as nobody: {done.stderr}")


def test_read_only_socket(case):
    """Everything may be seen over it and nothing changed."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(4, SMALL)
    daemon.make_group("raid5", drives[:3])
    daemon.wait_idle()
    seen = daemon.readonly_socket
    for path in ("drives", "groups", "groups/g", "volumes", "spares", "exports", "events", "health",
                 "status", "examine", "version"):
        status, answer = daemon.http("GET", path, control=seen)
        equal(status, 200, f"GET {path}: {answer}")
    for method, path, body in (
            ("POST", "drives", '{"paths": ["/dev/null"]}'),
            ("POST", "groups", '{"level": "raid1", "drives": ["0", "1"]}'),
            ("POST", "drives/0/fail", "{}"), ("POST", "assemble", "{}"),
            ("DELETE", "groups/g", None), ("DELETE", "volumes/g/v", None),
            ("DELETE", "exports/g/v", None), ("PATCH", "groups/g", '{"name": "x"}'),
            ("POST", "groups/g/verify", "{}")):
        status, answer = daemon.http(method, path, body, control=seen)
        equal((status, answer["error"]["code"]), (403, "permission-denied"), f"{method} {path}")
    equal(daemon.warpraid("status", control=seen).status, 0, "status over the read-only socket")
    answer = daemon.warpraid("fail", "drive", drives[0], control=seen)
    equal((answer.status, answer.code), (1, "permission-denied"), "fail over the read-only socket")
    equal(daemon.group("g")["state"], "optimal", "state")


def listening_tcp(pid):
    """Ports on which a process listens, with their addresses as the kernel writes them."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{table}", encoding="ascii") as lines:
            for fields in (line.split() for line in list(lines)[1:]):
                if fields[3] == "0A" and fields[9] in inodes:
                    found.append(fields[1])
    return found


def free_port(case):
    """Below those that the kernel gives to whoever asks for any: it stays free until the daemon
    takes it."""
    while True:
        port = case.random.randrange(15000, 30000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def test_no_tcp_by_default(case):
    daemon = Daemon(case).start()
    equal(listening_tcp(daemon.process.pid), [], "TCP listeners")


def test_tcp_on_loopback(case):
    port = free_port(case)
    daemon = Daemon(case, options=["--nbd-tcp", f"127.0.0.1:{port}"]).start()
    drives = daemon.make_drives(3, SMALL)
    daemon.make_group("raid5", drives)
    equal(len(listening_tcp(daemon.process.pid)), 1, "TCP listeners")
    uri = f"nbd://127.0.0.1:{port}/{daemon.list('export')[0]['name']}"
    info = clients.nbdinfo(case, uri)
    equal(info["export-size"], daemon.list("volume")[0]["size_bytes"], "export-size")
    pattern = clients.Pattern(case.random.getrandbits(28), size=32 * MIB)
    clients.write_pattern(case, uri, pattern)
    clients.check_pattern(case, daemon.uri("v"), pattern)
    handle = oracle.connect(uri)
    other = oracle.connect(daemon.uri("v"))
    data = case.random.randbytes(4096)
    handle.pwrite(data, 48 * MIB)
    equal(other.pread(4096, 48 * MIB), data, "what was written over TCP")


@parametrize("127.0.0.1", "127.0.0.1:99999", "127.0.0.1:x", "somewhere:1:2")
def test_bad_tcp_address(case, address):
    daemon = Daemon(case)
    _, text = refused_start(case, daemon, "--nbd-tcp", address)
    check("nbd-tcp" in text or address in text, f"not said what is wrong: {text}")


def test_second_daemon(case):
    """Two daemons on one state folder or one socket: the second goes, the first is unharmed."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(3, SMALL)
    uri = daemon.make_group("raid5", drives)
    daemon.wait_idle()
    load = clients.BackgroundPatterns(case, uri, clients.Pattern(
        case.random.getrandbits(28), size=16 * MIB))
    pid = str(daemon.process.pid)
    _, text = refused_start(case, daemon)
    check(pid in text, f"the first daemon's pid {pid} is not named: {text}")
    other = Daemon(case, "other")
    for option, path in (("--socket", daemon.socket), ("--nbd-socket", daemon.nbd_socket),
                         ("--readonly-socket", daemon.readonly_socket)):
        command = other.command()
        command[command.index(option) + 1] = path
        _, text = refused_start(case, other, command=command)
        check(str(path) in text, f"the socket is not named: {text}")
    # Nor may another daemon take the drives that this one holds.
    check(daemon.alive(), "the first daemon died")
    equal(daemon.group("g")["state"], "optimal", "state")
    load.stop()
    for path in (daemon.socket, daemon.nbd_socket, daemon.readonly_socket):
        check(path.exists(), f"{path.name} was taken away")
    daemon.cli("status")


def test_stale_sockets_are_replaced(case):
    """After a kill the sockets' files are still there; the next start is not bothered."""
    daemon = Daemon(case).start()
    for _ in range(5):
        daemon.kill()
        for path in (daemon.socket, daemon.nbd_socket, daemon.readonly_socket):
            check(path.exists(), f"{path.name} went with the daemon, this test shows nothing")
        daemon.start()
        daemon.cli("version")
    daemon.stop()
    for path in (daemon.socket, daemon.nbd_socket, daemon.readonly_socket):
        check(not path.exists(), f"{path.name} is left behind after an orderly stop")


def test_plain_file_in_the_way(case):
    """What is not a socket is not ours to remove."""
    daemon = Daemon(case)
    daemon.socket.write_text("precious")
    refused_start(case, daemon)
    equal(daemon.socket.read_text(), "precious", "the file in the way")


def test_client_waits(case):
    """A client with --wait, started first, gets in as soon as the daemon is ready; its groups are
    assembled by then."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(3, SMALL)
    daemon.make_group("raid5", drives)
    daemon.wait_idle()
    daemon.stop()
    answer = daemon.warpraid("list", "group")
    equal((answer.status, answer.code), (1, "daemon-unreachable"), "without a daemon")
    # On a slow machine it may take its time, but not as long as one that was told to wait longer.
    longer = case.start([case.program("warpraid"), "--socket", daemon.socket, "--wait", "10",
                         "list", "group"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started = time.monotonic()
    answer = daemon.warpraid("--wait", "1", "list", "group")
    waited = time.monotonic() - started
    equal((answer.status, answer.code), (1, "daemon-unreachable"), "nobody came")
    check(waited >= 0.9 and (waited < 10 or longer.poll() is None),
          f"it was told to wait for a second and waited {waited:.1f} s")
    answers = []
    client = threading.Thread(target=lambda: answers.append(
        daemon.warpraid("--wait", PATIENCE, "list", "group", timeout=2 * PATIENCE)))
    client.start()
    time.sleep(0.5)
    daemon.start()
    client.join(3 * PATIENCE)
    check(not client.is_alive(), "the client that waited hangs")
    equal(answers[0].status, 0, f"the client that waited: {answers[0].stdout}{answers[0].stderr}")
    equal([group["state"] for group in answers[0].data["groups"]], ["optimal"],
          "groups that it was shown")


def test_readiness_is_notified(case):
    """sd_notify's READY=1 comes when groups are assembled and sockets listen."""
    address = case.directory / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(address))
        listener.settimeout(PATIENCE)
        os.environ["NOTIFY_SOCKET"] = str(address)
        try:
            daemon = Daemon(case).start()
        finally:
            del os.environ["NOTIFY_SOCKET"]
        check(b"READY=1" in listener.recv(4096), "no READY=1")
        daemon.cli("version")


def test_slow_and_broken_clients(case):
    """Clients that say nothing, or nonsense, bother nobody else."""
    daemon = Daemon(case).start()
    drives = daemon.make_drives(3, SMALL)
    uri = daemon.make_group("raid5", drives)
    silent = []
    for path in (daemon.socket, daemon.nbd_socket):
        for text in (b"", b"GET /api/v1/groups", b"\0" * 64, case.random.randbytes(4096)):
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(path))
            try:
                client.sendall(text)
            except BrokenPipeError:
                pass
            silent.append(client)
    pattern = clients.Pattern(case.random.getrandbits(28), size=8 * MIB)
    clients.write_pattern(case, uri, pattern)
    equal(daemon.group("g")["name"], "g", "the daemon's answer")
    for client in silent:
        client.close()
    wait_until(lambda: daemon.list("export")[0]["connections"] == 0, "connections end")


def test_config_file(case):
    """The same settings from a file; unknown keys and wrong values are errors that name them."""
    daemon = Daemon(case)
    config = case.directory / "warpraidd.toml"
    text = (f'state-dir = "{daemon.state}"\nsocket = "{daemon.socket}"\n'
            f'readonly-socket = "{daemon.readonly_socket}"\nnbd-socket = "{daemon.nbd_socket}"\n')
    for extra, word in (('colour = "red"\n', "colour"), ('engine-arena = "12Q"\n', "engine-arena"),
                        ("command-timeout = -1\n", "command-timeout"), ("socket = \n", "")):
        config.write_text(text + extra)
        _, said = refused_start(case, daemon,
                                command=[case.program("warpraidd"), "--config", config])
        check(word in said, f"{extra!r}: {said}")
    config.write_text(text)
    daemon.command = lambda extra=(): [case.program("warpraidd"), "--config", config, *extra]
    daemon.start()
    daemon.cli("version")
    _, said = refused_start(case, daemon,
                            command=[case.program("warpraidd"), "--config", "/no/such/file"])
    check("/no/such/file" in said, said)
