"""Writes files of well-known formats that are no graphs into a folder."""

import gzip
import os
import struct
import sys
import zipfile

folder = sys.argv[1]
os.makedirs(os.path.join(folder, "checkpoints"), exist_ok=True)


def record(data):
    return struct.pack("<Q", len(data)) + b"crc1" + data + b"crc2"


FILES = {
    "weights.h5": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "model.tflite": b"\x1c\0\0\0TFL3" + bytes(100),
    "model.onnx": b"\x08\x07\x12\x07pytorch\x3a\x06\x12\x04main\x42\x02\x10\x0c",
    "model.ckpt.index": bytes(40) + b"\x57\xfb\x80\x8b\x24\x75\x47\xdb",
    "model.ckpt.data-00000-of-00001": b"\xbf\xff\x01" * 20,
    "model.meta.gz": gzip.compress(b"graph"),
    "events.out.tfevents.1": record(b"\x09\0\0\0\0\0\0\xf0?\x1a\rbrain.Event:2") * 2,
    "data.tfrecord": record(b"\n\x16\n\x14" + b"x" * 20),
    "train.py": b'"""Trains."""\nimport tensorflow as tf\n',
    "config.json": b'{"class_name": "Sequential"}',
    "checkpoints/checkpoint": b'model_checkpoint_path: "model.ckpt"\n',
}
for name, data in FILES.items():
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)
for name, inside in ("model.keras", "model.weights.h5"), ("arrays.npz", "arr_0.npy"):
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        archive.writestr(inside, b"")
