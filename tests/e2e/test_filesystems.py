"""ext4 and XFS on a volume: clean by their own checkers after each failure."""

from daemon import Daemon
from drives import Files
from filesystems import VOLUME, Fuse, make_tree, same_tree, survive_failures
from harness import LONG_PATIENCE, MIB, equal, need_programs, parametrize

SETUPS = (("raid1", 2, (0,)), ("raid5", 4, (1,)), ("raid6", 5, (0, 3)), ("raid10", 4, (0, 3)))


@parametrize(*((kind, *setup) for kind in ("ext4", "xfs") for setup in SETUPS))
def test_survives(case, what):
    survive_failures(case, *what, Files(case))


@parametrize("ext4", "xfs")
def test_mounted(case, kind):
    """A file system made on the export itself and mounted; drives fail while files are written."""
    need_programs(f"mkfs.{kind}")
    tree = make_tree(case)
    daemon = Daemon(case).start()
    drives = daemon.make_drives(5, 192 * MIB)
    volume = Fuse(case, daemon.make_group("raid6", drives, size=str(VOLUME)))
    case.run([f"mkfs.{kind}", "-q", *(["-F"] if kind == "ext4" else []), volume.file])
    there = case.directory / "mounted"
    there.mkdir()
    checker = ["e2fsck", "-f", "-n"] if kind == "ext4" else ["xfs_repair", "-n"]
    daemon.wait_idle()
    for slot in (1, 3):
        case.run(["mount", "-o", "loop", volume.file, there])
        try:
            script = 'rm -rf "$2/tree"; cp -a "$1" "$2/tree" && sync -f "$2"'
            copier = case.start(["sh", "-c", script, "copy", tree, there])
            daemon.cli("fail", "drive", drives[slot])
            equal(copier.wait(LONG_PATIENCE), 0, "status of the copying")
            same_tree(tree, there / "tree")
        finally:
            case.run(["umount", there])
        case.run([*checker, volume.file])
    for slot in (1, 3):
        new = case.file(f"new-{slot}.img", 192 * MIB)
        daemon.cli("create", "drive", new)
        daemon.cli("replace", "drive", drives[slot], new)
    daemon.wait_state("optimal")
    daemon.cli("fail", "drive", drives[0])
    case.run([*checker, volume.file])
    case.run(["mount", "-o", "loop,ro", volume.file, there])
    try:
        same_tree(tree, there / "tree")
    finally:
        case.run(["umount", there])
