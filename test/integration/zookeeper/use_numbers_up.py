# Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
"""Makes a stopped server believe that COUNT nodes have been created in a folder.

use_numbers_up.py DATA FOLDER COUNT

Otherwise a test would have to create two thousand million nodes to use up the sequence numbers. The count is stored
in the newest snapshot. The snapshot and each of its parts end with a checksum of all data before the checksum.
"""
import pathlib
import struct
import sys
import zlib

data, folder, count = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
# Size of the fields between a node's data and the count: its access rights (a long), two transactions and two times
# (longs), and the version of its data.
BEFORE_COUNT = 8 + 4 * 8 + 4
SEAL = struct.Struct(">q")
LENGTH = struct.Struct(">i")

snapshot = max(pathlib.Path(data).rglob("snapshot.*"), key=lambda file: int(file.suffix[1:], 16))
content = bytearray(snapshot.read_bytes())

# Each checksum is followed by the string "/".
end_mark = LENGTH.pack(1) + b"/"
seals = []
found = content.find(end_mark)
while found != -1:
    at = found - SEAL.size
    if at >= 0 and SEAL.unpack_from(content, at)[0] == zlib.adler32(content[:at]):
        seals.append(at)
    found = content.find(end_mark, found + 1)
if not seals:
    sys.exit("no checksum was found in " + snapshot.name)

path = LENGTH.pack(len(folder)) + folder
at = content.find(path)
if at == -1:
    sys.exit("no such node in " + snapshot.name)
at += len(path)
at += LENGTH.size + max(LENGTH.unpack_from(content, at)[0], 0) + BEFORE_COUNT
LENGTH.pack_into(content, at, count)
for seal in seals:
    SEAL.pack_into(content, seal, zlib.adler32(content[:seal]))
snapshot.write_bytes(content)
