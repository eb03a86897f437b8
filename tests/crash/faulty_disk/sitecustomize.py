"""Python imports this at its start if its folder is on the path: the disk fails as FAULTY_DISK says."""

import os

import faulty_vfs

disk = faulty_vfs.FaultyDisk(faulty_vfs.parse(os.environ["FAULTY_DISK"]))
