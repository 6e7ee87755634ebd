"""Writes entry_v1.kiln, from the grammar in cache/entry_format.h alone."""

import hashlib
import pathlib
import struct

key = hashlib.sha256(b"test key 1").hexdigest().encode()
key_text = b"key: 1\ntarget: cpu\nplan:\nrelu(a)\n"
payload = bytes(i * 31 % 256 for i in range(64))

body = b"KILN\r\n\x1a\n"
body += struct.pack("<IIQ", 1, len(key_text), len(payload))
body += b"kiln 0.1.0".ljust(16, b"\0")
body += key + key_text + payload

path = pathlib.Path(__file__).with_name("entry_v1.kiln")
path.write_bytes(body + hashlib.sha256(body).digest())
