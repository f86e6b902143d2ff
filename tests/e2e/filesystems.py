"""File systems on an export, and programs that know no NBD: by nbdfuse, or else by copies."""

import filecmp
import os

import clients
from daemon import Daemon
from harness import MIB, PATIENCE, Skip, equal, need_programs, need_root, wait_until

VOLUME = 320 * MIB  # XFS takes no less than 300 MiB
DRIVE = 384 * MIB


def make_tree(case):
    """Files of many sizes, from none to several stripes, and names of several kinds."""
    tree = case.directory / "tree"
    for folder in ("a", "a/b", "with space", "ünï"):
        (tree / folder).mkdir(parents=True)
        for number in range(8):
            size = case.random.choice((0, 1, 511, 4096, 5000, 65536, 200000, 1 << 20))
            (tree / folder / f"file-{number}").write_bytes(case.random.randbytes(size))
    (tree / "link").symlink_to("a/b/file-1")
    return tree


def same_tree(left, right):
    compared = filecmp.dircmp(left, right)
    stack = [compared]
    while stack:
        now = stack.pop()
        only = [name for name in now.left_only + now.right_only if name != "lost+found"]
        equal(only, [], f"names only on one side of {now.left}")
        _, different, errors = filecmp.cmpfiles(now.left, now.right, now.common_files,
                                                shallow=False)
        equal((different, errors), ([], []), f"files that differ in {now.left}")
        stack += now.subdirs.values()


class FileSystem:
    """A filled file system: made on the export where that can be, checked there."""

    def __init__(self, case, kind, place):
        need_programs(*{"ext4": ("mke2fs", "e2fsck", "debugfs"),
                        "xfs": ("mkfs.xfs", "xfs_repair")}[kind])
        self.case = case
        self.kind = kind
        self.tree = make_tree(case)
        self.place = place
        place.write(self.make)
        self.check()

    def make(self, image):
        if self.kind == "ext4":
            self.case.run(["mke2fs", "-t", "ext4", "-q", "-F", "-d", self.tree,
                           "-E", "lazy_itable_init=1,lazy_journal_init=1", image])
            return
        need_root()
        self.case.run(["mkfs.xfs", "-q", image])
        self.with_mount(image, lambda there: self.case.run(["cp", "-a", f"{self.tree}/.", there]))

    def with_mount(self, image, action, options="loop"):
        there = self.case.directory / "mounted"
        there.mkdir(exist_ok=True)
        self.case.run(["mount", "-o", options, image, there])
        try:
            action(there)
        finally:
            self.case.run(["umount", there])

    def check(self):
        """The file system's own checker finds nothing, and the files are as they were."""
        self.place.read(self.check_image)

    def check_image(self, image):
        checker = ["e2fsck", "-f", "-n"] if self.kind == "ext4" else ["xfs_repair", "-n"]
        self.case.run([*checker, image])
        if os.geteuid() == 0:
            self.with_mount(image, lambda there: same_tree(self.tree, there), "loop,ro")
            return
        back = self.case.directory / "back"
        back.mkdir()
        self.case.run(["debugfs", "-R", f"rdump / {back}", image])
        same_tree(self.tree, back)
        self.case.run(["rm", "-r", back])


class Fuse:
    """The volume as a file, by nbdfuse: for programs that know no NBD."""

    def __init__(self, case, uri):
        need_root()
        need_programs("nbdfuse", "mount", "umount")
        if not os.path.exists("/dev/fuse"):
            raise Skip("no /dev/fuse")
        self.case = case
        self.folder = case.directory / "fuse"
        self.folder.mkdir()
        self.file = self.folder / "volume"
        self.process = case.start(["nbdfuse", self.file, uri])
        case.cleanup(self.close)
        wait_until(lambda: self.file.exists() or self.process.poll() is not None,
                   "nbdfuse shows the volume")
        if self.process.poll() is not None:
            raise Skip("nbdfuse cannot mount here")

    def write(self, action):
        action(self.file)

    read = write

    def close(self):
        if self.process.poll() is None:
            # A loop device over the file lets go of it some time after it was unmounted.
            wait_until(lambda: self.case.run(["umount", self.folder], status=None).returncode == 0,
                       "the volume can be unmounted")
            self.process.wait(PATIENCE)


class Copies:
    """The volume as images that nbdcopy carries there and back."""

    def __init__(self, case, uri):
        self.case = case
        self.uri = uri

    def write(self, action):
        image = self.case.file("made.img", VOLUME)
        action(image)
        clients.nbdcopy(self.case, image, self.uri, "--flush")

    def read(self, action):
        copy = self.case.directory / "copy.img"
        clients.nbdcopy(self.case, self.uri, copy)
        equal(copy.stat().st_size, VOLUME, "size of the copy")
        action(copy)
        copy.unlink()


def place_on(case, uri, block):
    """nbdfuse passes on requests of any size, which an export with large blocks refuses."""
    if block == 512:
        try:
            return Fuse(case, uri)
        except Skip as skip:
            case.note(f"images instead of the export itself: {skip}")
    return Copies(case, uri)


def survive_failures(case, kind, level, count, losses, source):
    daemon = Daemon(case).start()
    drives = source.several(count, DRIVE)
    daemon.cli("create", "drive", *drives)
    uri = daemon.make_group(level, drives, size=str(VOLUME))
    daemon.wait_idle()
    system = FileSystem(case, kind, place_on(case, uri, daemon.list("volume")[0]["block_bytes"]))
    for slot in losses:
        daemon.cli("fail", "drive", drives[slot])
        daemon.wait_state("degraded")
        system.check()
    for slot in losses:
        new = source.make(DRIVE)
        daemon.cli("create", "drive", new)
        daemon.cli("replace", "drive", drives[slot], new)
    daemon.wait_state("optimal")
    system.check()
    # The drives that were never lost go now: what was rebuilt must carry it.
    healthy = [slot for slot in range(count) if slot not in losses]
    daemon.cli("fail", "drive", drives[healthy[0]])
    system.check()
