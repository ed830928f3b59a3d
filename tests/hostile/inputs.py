"""Hostile inputs, each made in an empty folder in a moment: large ones are sparse, or repeat a compressed piece."""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from leaktight.core.digest import digest

Maker = Callable[[Path], None]
"""Writes the file that it is given."""
GIB = 1 << 30
APPLICATION, FORMAT = 0x1EAC7161, 3


def of(content: bytes | str | Callable[[], bytes | str]) -> Maker:
    """Return what writes these bytes, or those that a function makes when they are needed."""

    def make(path: Path) -> None:
        made = content() if callable(content) else content
        path.write_bytes(made.encode() if isinstance(made, str) else made)

    return make


def sparse(size: int, content: bytes = b"") -> Maker:
    """Return what makes a file of a size that holds a few bytes and one hole."""

    def make(path: Path) -> None:
        with path.open("wb") as file:
            file.write(content)
            file.truncate(size)

    return make


def cut(make: Maker, size: int) -> Maker:
    """Return what makes the first bytes of another file."""

    def make_less(path: Path) -> None:
        make(path)
        path.write_bytes(path.read_bytes()[:size])

    return make_less


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def loop(path: Path) -> None:
    path.symlink_to(path)


def link(target: str) -> Maker:
    return lambda path: path.symlink_to(target)


def unix_socket(path: Path) -> None:
    # A socket's path must be short, and the folder of a test is not.
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


FILES: dict[str, Maker] = {
    "a named pipe": pipe,
    "a device without end": link("/dev/zero"),
    "a device that is full": link("/dev/full"),
    "a folder": folder,
    "a link to itself": loop,
    "a socket": unix_socket,
    "200 GB of holes": sparse(200 * 10**9),
}
"""What can stand in the place of any file."""

DEEP = 100_000
TOML: dict[str, Maker] = {
    **FILES,
    "lists 100,000 deep": of(lambda: "title = " + "[" * DEEP + "]" * DEEP),
    "tables 100,000 deep": of(lambda: "title = " + "{a=" * DEEP + "1" + "}" * DEEP),
    "a name of 100,000 parts": of(lambda: ".".join("a" * DEEP) + " = 1"),
    "a section of 100,000 parts": of(lambda: f"[{'.'.join('a' * DEEP)}]"),
    "a section 1,000 deep": of(lambda: f"[scenario.{'.'.join('a' * 1000)}]"),
    "a number of 5,000 digits": of(lambda: f"[scenario]\nrounds = {'9' * 5000}"),
    "a number of 100,000 hexadecimal digits": of(lambda: f"[scenario]\nrounds = 0x{'f' * DEEP}"),
    "a number beyond all numbers": of(lambda: "[scenario]\nrounds = 1e400"),
    "no UTF-8": of(lambda: b"title = '\xff\xfe'"),
    "NUL bytes": of(lambda: bytes(1000)),
    "half a MiB of holes": sparse(1 << 19),
    "a text without an end": of(lambda: 'title = """' + "a" * 900_000),
    "100,000 unknown sections": of(lambda: "".join(f"a{n}=1\n" for n in range(100_000))),
    "100,000 unknown settings": of(lambda: "[scenario]\n" + "".join(f"a{n}=1\n" for n in range(100_000))),
    "80,000 tables": of(lambda: "[[scenario]]\n" * 80_000),
    "a long unknown name": of(lambda: f"{'b' * 900_000} = 1"),
    "a name that steers a terminal": of(lambda: '"\\u001b[2J\\u0007" = 1'),
}
NOISE = '{kind = "gaussian_noise", std = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}'
PLAN: dict[str, Maker] = {
    "70,000 defences": of(lambda: '[scenario]\ndata = "digits"\nmodel = "mlp"\n' + "[[defences]]\n" * 70_000),
    "lists that make 10^12 defences": of(
        lambda: (
            '[scenario]\ndata = "digits"\nmodel = "mlp"\n[[defences]]\nkind = "chain"\n'
            + "links = ["
            + ", ".join([NOISE] * 12)
            + "]\n"
            + '[[attacks]]\nkind = "analytic"\n'
        )
    ),
    "100,000 seeds": of(
        lambda: (
            '[scenario]\ndata = "digits"\nmodel = "mlp"\n[[attacks]]\nkind = "analytic"\n'
            + f"[grid]\nbatch_sizes = [1, 2]\nseeds = {list(range(100_000))}\n"
        )
    ),
}

JSON: dict[str, Maker] = {
    **FILES,
    "lists 100,000 deep": of(lambda: "[" * DEEP),
    "tables 100,000 deep": of(lambda: '{"format":' * DEEP),
    "a number of 5,000 digits": of(lambda: f'{{"format": {"9" * 5000}}}'),
    "a number beyond all numbers": of(lambda: '{"format": 1e400}'),
    "no UTF-8": of(lambda: b'{"format": "\xff"}'),
    "NUL bytes": of(lambda: bytes(1000)),
    "a million entries": of(lambda: f'{{"format": [{",".join("1" * 1_000_000)}]}}'),
    "no table": of(lambda: "[]"),
}
POLICY: dict[str, Maker] = {
    **{name: TOML[name] for name in (*FILES, "lists 100,000 deep", "a name of 100,000 parts", "no UTF-8", "NUL bytes")},
    "a policy of 900,000 characters": of(lambda: f'policy = "{"3-" * 450_000}3"'),
}


def zeros(size: int, piece: int = 1 << 24) -> bytes:
    """Return a deflate stream of so many zero bytes; each piece is independent of the one before it, so it is made once."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    once = packer.compress(bytes(piece)) + packer.flush(zlib.Z_FULL_FLUSH)
    return once * (size // piece) + zlib.compressobj(9, zlib.DEFLATED, -15).flush()


def gzip_bomb(piece: bytes, times: int) -> Maker:
    """Return what writes a gzip file of many members that are all the same."""
    return of(lambda: gzip.compress(piece, mtime=0) * times)


def array_header(shape: tuple[int, ...], kind: str = "|u1") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


def stored(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def npz(method: int = zipfile.ZIP_STORED, **members: bytes) -> Maker:
    return lambda path: stored(path, {f"{name}.npy": content for name, content in members.items()}, method)


def array(values: np.ndarray, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, values, allow_pickle=pickled)
    return file.getvalue()


LABELS = array(np.arange(10) % 2)


def packed_zeros(declared: tuple[int, ...], size: int, claimed: int | None = None) -> Maker:
    """Return an archive whose images unpack to so many zero bytes, whatever their header and the archive's list say."""

    def make(path: Path) -> None:
        header = array_header(declared)
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        content = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH) + zeros(size)
        unpacked = size + len(header) if claimed is None else claimed
        stored(path, {"x.npy": content, "y.npy": LABELS})
        raw = bytearray(path.read_bytes())
        for mark, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            start = raw.index(mark)
            raw[start + at : start + at + 2] = struct.pack("<H", zipfile.ZIP_DEFLATED)
            raw[start + at + 14 : start + at + 18] = struct.pack("<I", min(unpacked, 2**32 - 2))
        path.write_bytes(raw)

    return make


def twice(path: Path) -> None:
    stored(path, {"x.npy": array(np.zeros((10, 8, 8))), "y.npy": LABELS})
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"y.npy", b"x.npy"))


def locked(path: Path) -> None:
    stored(path, {"x.npy": array(np.zeros((10, 8, 8))), "y.npy": LABELS})
    raw = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(mark) + at] |= 1
    path.write_bytes(raw)


def many_members(path: Path) -> None:
    stored(path, {f"member-{number:030}": b"" for number in range(20_000)})


def of_holes(path: Path) -> None:
    """Write an archive with a member of 3 GiB that is stored as a hole."""
    header = array_header((3, GIB))
    stored(path, {"x.npy": header, "y.npy": LABELS})
    raw = path.read_bytes()
    begin = raw.index(header) + len(header)
    head, tail = bytearray(raw[:begin]), bytearray(raw[begin:])
    size = struct.pack("<II", len(header) + 3 * GIB, len(header) + 3 * GIB)
    head[18:26] = size
    entry = tail.index(b"PK\x01\x02")
    tail[entry + 20 : entry + 28] = size
    second, end = tail.index(b"PK\x01\x02", entry + 4), tail.index(b"PK\x05\x06")
    for at in (second + 42, end + 16):
        tail[at : at + 4] = struct.pack("<I", struct.unpack("<I", tail[at : at + 4])[0] + 3 * GIB)
    with path.open("wb") as file:
        file.write(head)
        file.seek(begin + 3 * GIB)
        file.write(tail)


NPZ: dict[str, Maker] = {
    **FILES,
    "4 TB declared": npz(x=array_header((2**42,)), y=LABELS),
    "more declared than there are numbers for": npz(x=array_header((2**40, 2**40, 2**40)), y=LABELS),
    "4 GB from 4 MB": packed_zeros((4, GIB), 4 * GIB),
    "4 GB behind a header of ten bytes": packed_zeros((10, 1), 4 * GIB, claimed=200),
    "a pickle": npz(x=array(np.array([{"a": 1}] * 10, dtype=object), pickled=True), y=LABELS),
    "a cut archive": cut(npz(x=array(np.zeros((10, 8, 8))), y=LABELS), 700),
    "two members of one name": twice,
    "a password": locked,
    "20,000 members": many_members,
    "3 GiB of holes in a member": of_holes,
    "a header of 100 kB": npz(x=b"\x93NUMPY\x02\x00" + struct.pack("<I", 100_000) + b"(" * 100_000, y=LABELS),
    "no archive": of(lambda: os.urandom(5000)),
    "images that make a network of a billion parameters": lambda path: np.savez_compressed(
        path, x=np.zeros((4, 3000, 3000), np.uint8), y=np.array([0, 1, 0, 1])
    ),
}

ROWS = b"".join(b"%d,%d\n" % (n % 7, n % 2) for n in range(1 << 14))
CSV: dict[str, Maker] = {
    **FILES,
    "3 GiB of holes": sparse(3 * GIB, b"a,label\n"),
    "NUL bytes": of(lambda: bytes(300_000)),
    "no UTF-8": of(lambda: b"a,label\n1,0\n\xff,1\n"),
    "a cell of 200,000 characters": of(lambda: "a,label\n" + "x" * 200_000 + ",0\n1,1\n"),
    "a million columns": of(lambda: ",".join(f"c{n}" for n in range(1_000_000)) + "\n"),
    "90,000 columns, the last one twice": of(lambda: ",".join([*(f"c{n}" for n in range(90_000)), "c89999"]) + "\n1\n"),
    "90,000 columns without a label": of(
        lambda: f"{','.join(f'c{n}' for n in range(90_000))}\n{','.join('1' * 90_000)}\n"
    ),
    "one label of 100,000 characters": of(lambda: "a,label\n" + "1,0\n" * 20_000 + f"1,{'x' * 100_000}\n"),
    "a line without an end": of(lambda: ("1," * 100_000) * 200),
    "two million empty lines": of(lambda: "a,label\n" + "\n" * 2_000_000),
    "a quote without an end": of(lambda: 'a,label\n"' + "1,0\n" * 200_000),
    "a name of 100,000 characters": of(lambda: "x" * 100_000 + ",label\n1,0\n"),
}
CSV_GZ: dict[str, Maker] = {
    **{name: FILES[name] for name in ("a named pipe", "a device without end", "200 GB of holes")},
    "4 GB of rows": gzip_bomb(ROWS * 256, 256),
    "4 GB of empty lines": gzip_bomb(b"\n" * (1 << 24), 256),
    "4 GB of zeros": gzip_bomb(bytes(1 << 20), 4096),
    "a cut gzip": of(lambda: gzip.compress(b"a,label\n" + ROWS)[:90]),
    "no gzip": of(lambda: b"a,label\n1,0\n"),
    "damaged bytes": of(lambda: gzip.compress(os.urandom(9000))[:4000] + bytes(5000)),
}

IDX_HEADER = b"\x00\x00\x08\x03"
IDX: dict[str, Maker] = {
    "a named pipe": pipe,
    "a device without end": link("/dev/zero"),
    "a link to itself": loop,
    "200 GB of holes": sparse(200 * 10**9),
    "12 GiB of holes": sparse(12 * GIB, IDX_HEADER + struct.pack(">III", 3, 2**16, 2**16)),
    "4 TB declared": of(lambda: IDX_HEADER + struct.pack(">III", 2**20, 2**11, 2**11)),
    "an unknown type": of(lambda: b"\x00\x00\x7f\x03" + bytes(12)),
}
IDX_GZ: dict[str, Maker] = {
    "a named pipe": pipe,
    "4 GB from 4 MB": of(
        lambda: (
            gzip.compress(IDX_HEADER + struct.pack(">III", 1 << 12, 1 << 10, 1 << 10))
            + gzip.compress(bytes(1 << 24)) * 256
        )
    ),
    "a cut gzip": of(lambda: gzip.compress(bytes(100_000))[:60]),
}
CIFAR: dict[str, Maker] = {
    "a named pipe": pipe,
    "a device without end": link("/dev/zero"),
    "a folder": folder,
    "200 GB of holes": sparse(200 * 10**9),
    "9 GiB of holes": sparse(3073 * (3 << 20)),
    "half a record": of(lambda: bytes(3000)),
}


def png(width: int, height: int, *chunks: tuple[bytes, bytes], rows: bytes = b"") -> Maker:
    """Return a picture of so many grey pixels."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    parts = [b"\x89PNG\r\n\x1a\n", head, *(chunk(*one) for one in chunks), chunk(b"IDAT", rows), chunk(b"IEND", b"")]
    return of(b"".join(parts))


def png_zeros(width: int, height: int) -> Maker:
    size = (width + 1) * height
    return lambda path: png(width, height, rows=b"\x78\xda" + zeros(size - size % (1 << 24)))(path)


TEXT = b"x\x00\x00" + zlib.compress(bytes(1 << 22))
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
IMAGE: dict[str, Maker] = {
    "30,000 x 30,000 pixels": png_zeros(30_000, 30_000),
    "12,000 x 12,000 pixels": png_zeros(12_000, 12_000),
    "two billion pixels wide": png(2**31 - 1, 1),
    "4 MiB of words": png(8, 8, (b"zTXt", TEXT), rows=zlib.compress(bytes(72))),
    "200 GB of holes": sparse(200 * 10**9, b"\x89PNG\r\n\x1a\n"),
    "PostScript": of(lambda: POSTSCRIPT),
    "a cut picture": png(8, 8, rows=zlib.compress(bytes(72))[:6]),
    "no picture": of(lambda: os.urandom(100)),
    "a huge GIF": of(lambda: b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0) + b"," + bytes(20)),
}


def tensors(header: object, content: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + content


def entry(shape: list[int], begin: int, end: int, kind: str = "F32") -> dict[str, object]:
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


def entries(count: int) -> bytes:
    one = b'"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    return b"{" + b",".join(one % number for number in range(count)) + b"}"


SAFETENSORS: dict[str, Maker] = {
    **FILES,
    "3.9 GiB of holes behind a header": sparse(
        len(tensors({"a": entry([GIB - 2**20], 0, 4 * GIB - 2**22)})) + 4 * GIB - 2**22,
        tensors({"a": entry([GIB - 2**20], 0, 4 * GIB - 2**22)}),
    ),
    "200,000 tensors": of(lambda: tensors(entries(200_000))),
    "a million tensors": of(lambda: tensors(entries(1_000_000))),
    "tensors that overlap": of(lambda: tensors({"a": entry([2], 0, 8), "b": entry([2], 4, 12)}, bytes(12))),
    "a tensor beyond the file": of(lambda: tensors({"a": entry([2**40], 0, 2**42)}, bytes(12))),
    "a header of 2^63 bytes": of(lambda: tensors(b"{}", length=2**63)),
    "a header 100,000 deep": of(lambda: tensors(b'{"a":' + b"[" * DEEP)),
    "a header with a number of 5,000 digits": of(
        lambda: tensors(b'{"a":{"dtype":"F32","shape":[' + b"9" * 5000 + b"]}}")
    ),
    "no safetensors": of(lambda: os.urandom(5000)),
    "an order 100,000 deep": of(lambda: tensors({"__metadata__": {"order": "[" * DEEP, "leaktight": "[" * DEEP}})),
}

MANIFEST = {"kind": "gradient", "sender": "a", "round": 0, "tensors": "a.safetensors", "parameters": "b.safetensors"}
MANIFESTS: dict[str, Maker] = {
    **JSON,
    "examples without number": of(lambda: json.dumps({**MANIFEST, "examples": 10**9, "shape": [10**9]})),
    "a rate beyond all numbers": of(lambda: json.dumps({**MANIFEST, "learning_rate": 1}).replace(": 1}", ": 1e400}")),
    "a path": of(lambda: json.dumps({**MANIFEST, "tensors": "../../etc/passwd"})),
}
PEM: dict[str, Maker] = {**FILES, "no certificate": of(os.urandom(3000)), "nothing": of("")}


def database(*statements: str) -> Maker:
    """Return what writes a store of this format with these tables in it."""

    def make(path: Path) -> None:
        with sqlite3.connect(path) as store:
            for statement in (*statements, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {FORMAT}"):
                store.execute(statement)
        store.close()

    return make


META = "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
CELLS = """CREATE TABLE cells (
    key TEXT PRIMARY KEY, status TEXT NOT NULL, record TEXT NOT NULL, fingerprint TEXT NOT NULL, versions TEXT NOT NULL,
    checksum TEXT NOT NULL, gallery BLOB NOT NULL, gallery_checksum TEXT NOT NULL
)"""
FINGERPRINTS = "CREATE TABLE fingerprints (digest TEXT PRIMARY KEY, parts TEXT NOT NULL)"
PLANNED = "CREATE TABLE planned (position INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE)"
TABLES = (META, CELLS, FINGERPRINTS, PLANNED)
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n"


def damaged(path: Path) -> None:
    insert = "INSERT INTO planned VALUES ({0}, 'k{0}')"
    database(*TABLES, *(insert.format(number) for number in range(2000)))(path)
    raw = bytearray(path.read_bytes())
    raw[4096:-4096] = os.urandom(len(raw) - 8192)
    path.write_bytes(raw)


STORE: dict[str, Maker] = {
    **{
        name: FILES[name]
        for name in ("a named pipe", "a device without end", "a folder", "a link to itself", "a socket")
    },
    "200 GB of holes": sparse(200 * 10**9, b"SQLite format 3\x00"),
    "no database": of(lambda: os.urandom(9000)),
    "a damaged database": damaged,
    "a cut database": cut(database(*TABLES), 6000),
    "a view without end": database(
        META, CELLS, FINGERPRINTS, f"CREATE VIEW planned AS {ENDLESS} AS position, n AS key FROM c"
    ),
    "a trigger": database(*TABLES, "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM cells; END"),
    "other columns": database(META, "CREATE TABLE cells (key)", FINGERPRINTS, PLANNED),
}


def cell(record: str) -> str:
    """Return what puts a record into a store, with the checksum that it needs to be looked at: whoever makes one up knows how."""
    row = ("k", "done", record, "", "{}")
    return f"INSERT INTO cells VALUES ('k', 'done', '{record}', '', '{{}}', '{digest(*row)}', x'', '{digest(b'')}')"  # noqa: S608


STORE_READ: dict[str, Maker] = {
    "a record 100,000 deep": database(*TABLES, "INSERT INTO planned VALUES (0, 'k')", cell("[" * DEEP)),
    "a record that is none": database(*TABLES, "INSERT INTO planned VALUES (0, 'k')", cell('{"cell": 3}')),
}
