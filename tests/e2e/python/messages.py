"""Message classes from descriptors written by hand, for contracts that Debian has no package of."""

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bytes": _FIELD.TYPE_BYTES,
    "int32": _FIELD.TYPE_INT32,
    "string": _FIELD.TYPE_STRING,
}


def class_of(descriptor):
    """The class of a message, with whatever release of protobuf is installed."""
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(descriptor.file.pool).GetPrototype(descriptor)


def package(name, messages):
    """The classes of a proto3 package, by the names of their messages.

    `messages` maps each message to its fields, and a field to its number and type: a scalar, a
    message by its full name, or `map`, which maps text to text; `repeated` may stand before it.
    """
    file = descriptor_pb2.FileDescriptorProto(
        name=f"written/by/hand/{name}.proto", package=name, syntax="proto3"
    )
    file.dependency.append(any_pb2.DESCRIPTOR.name)
    for message, fields in messages.items():
        described = file.message_type.add(name=message)
        for field, (number, kind) in fields.items():
            _add(described, f".{name}.{message}", field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    named = pool.FindMessageTypeByName
    return {message: class_of(named(f"{name}.{message}")) for message in messages}


def _add(message, full_name, name, number, kind):
    kind, repeated = kind.removeprefix("repeated "), kind.startswith("repeated ")
    if kind == "map":
        entry = message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        _add(entry, "", "key", 1, "string")
        _add(entry, "", "value", 2, "string")
        kind, repeated = f"{full_name}.{entry.name}", True
    field = message.field.add(name=name, number=number)
    field.label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, kind
