"""The messages of kiln.v1, made from the schema that is shipped as bytes.

Generated modules must match the installed protobuf runtime; a descriptor set
works with every one of them (4.21 and later).
"""

from __future__ import annotations

import pathlib
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SCHEMA_FILE = pathlib.Path(__file__).with_name("kiln_v1.desc")


class Schema:
    """`schema.CompileRequest(...)`: message classes by name."""

    def __init__(self, serialized: bytes):
        self._pool = descriptor_pool.DescriptorPool()
        files = descriptor_pb2.FileDescriptorSet.FromString(serialized)
        for file in files.file:
            self._pool.Add(file)
        self._classes: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._classes:
            descriptor = self._pool.FindMessageTypeByName(f"kiln.v1.{name}")
            self._classes[name] = _class_of(descriptor, self._pool)
        return self._classes[name]

    def enum(self, name: str, number: int) -> str:
        """The name of a value of the enum `name`."""
        descriptor = self._pool.FindEnumTypeByName(f"kiln.v1.{name}")
        return str(descriptor.values_by_number[number].name)

    def enum_number(self, name: str, value: str) -> int:
        descriptor = self._pool.FindEnumTypeByName(f"kiln.v1.{name}")
        return int(descriptor.values_by_name[value].number)

    def method_types(self, service: str, method: str) -> tuple[Any, Any]:
        """Request and response class of an RPC."""
        descriptor = self._pool.FindServiceByName(f"kiln.v1.{service}")
        found = descriptor.methods_by_name[method]
        return (getattr(self, found.input_type.name),
                getattr(self, found.output_type.name))


def _class_of(descriptor: Any, pool: Any) -> Any:
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    # Before 4.22.
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


_schema: Schema | None = None


def schema() -> Schema:
    """The schema shipped with this package, read once."""
    global _schema
    if _schema is None:
        _schema = Schema(SCHEMA_FILE.read_bytes())
    return _schema
