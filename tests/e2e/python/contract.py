"""A contract as its server describes it: nothing of it is known here beforehand."""

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool

import messages

VERSIONS = ("v1", "v1alpha")
# No call of these tests takes longer, however busy the machine is.
PATIENCE = 30


def _reflection(version):
    name = f"grpc.reflection.{version}"
    return messages.package(
        name,
        {
            "ServerReflectionRequest": {
                "host": (1, "string"),
                "file_by_filename": (3, "string"),
                "file_containing_symbol": (4, "string"),
                "list_services": (7, "string"),
            },
            "FileDescriptorResponse": {"file_descriptor_proto": (1, "repeated bytes")},
            "ServiceResponse": {"name": (1, "string")},
            "ListServiceResponse": {"service": (1, f"repeated .{name}.ServiceResponse")},
            "ErrorResponse": {"error_code": (1, "int32"), "error_message": (2, "string")},
            "ServerReflectionResponse": {
                "valid_host": (1, "string"),
                "original_request": (2, f".{name}.ServerReflectionRequest"),
                "file_descriptor_response": (4, f".{name}.FileDescriptorResponse"),
                "list_services_response": (6, f".{name}.ListServiceResponse"),
                "error_response": (7, f".{name}.ErrorResponse"),
            },
        },
    )


class Reflection:
    """One version of server reflection."""

    def __init__(self, channel, version, metadata=()):
        known = _reflection(version)
        self._request = known["ServerReflectionRequest"]
        self._metadata = metadata
        self._ask = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=self._request.SerializeToString,
            response_deserializer=known["ServerReflectionResponse"].FromString,
        )

    def ask(self, **question):
        """The answer to one question."""
        questions = iter([self._request(**question)])
        answers = list(self._ask(questions, timeout=PATIENCE, metadata=self._metadata))
        if len(answers) != 1:
            raise AssertionError(f"{len(answers)} answers to {question}")
        return answers[0]

    def services(self):
        """The names of all services."""
        # Any text asks for the list, but an empty one would not be sent.
        answer = self.ask(list_services="*")
        return {service.name for service in answer.list_services_response.service}

    def files(self, **question):
        """The described files of an answer."""
        answer = self.ask(**question)
        if answer.error_response.error_code:
            raise AssertionError(f"{question}: {answer.error_response.error_message}")
        described = answer.file_descriptor_response.file_descriptor_proto
        return [descriptor_pb2.FileDescriptorProto.FromString(file) for file in described]


class Contract:
    """The services of a server, with their messages."""

    def __init__(self, reflection, services):
        self._pool = descriptor_pool.DescriptorPool()
        self._files, self._methods = {}, {}
        for service in services:
            self._learn(reflection, reflection.files(file_containing_symbol=service))
        for file in self._files.values():
            for service in file.service:
                for method in service.method:
                    path = f"/{file.package}.{service.name}/{method.name}"
                    self._methods[path] = method

    def _learn(self, reflection, files):
        """Adds files, those they import before them."""
        for file in files:
            if file.name in self._files:
                continue
            self._files[file.name] = file
            for imported in file.dependency:
                if imported not in self._files:
                    self._learn(reflection, reflection.files(file_by_filename=imported))
            self._pool.AddSerializedFile(file.SerializeToString())

    def descriptors(self):
        """What was learned, to be compared."""
        return {name: file.SerializeToString(deterministic=True) for name, file in self._files.items()}

    def methods(self, service):
        """The names of a service's methods."""
        return {path.rpartition("/")[2] for path in self._methods if path.startswith(f"/{service}/")}

    def message(self, name):
        """The class of a message."""
        return messages.class_of(self._pool.FindMessageTypeByName(name.lstrip(".")))

    def client(self, channel, service, metadata=()):
        """The calls of a service over a channel."""
        return Client(self, channel, service, metadata)

    def method(self, path):
        """The description of a method."""
        return self._methods[path]


class Client:
    """The calls of a service as methods: `client.Get(key="a")` for one request and one answer,
    an iterator of answers where the contract says `stream`."""

    def __init__(self, contract, channel, service, metadata):
        self._contract, self._channel = contract, channel
        self._service, self._metadata = service, metadata

    def __getattr__(self, name):
        path = f"/{self._service}/{name}"
        method = self._contract.method(path)
        request = self._contract.message(method.input_type)
        kinds = {
            (False, False): grpc.Channel.unary_unary,
            (False, True): grpc.Channel.unary_stream,
            (True, True): grpc.Channel.stream_stream,
        }
        kind = kinds[method.client_streaming, method.server_streaming].__name__
        call = getattr(self._channel, kind)(
            path,
            request_serializer=request.SerializeToString,
            response_deserializer=self._contract.message(method.output_type).FromString,
        )

        def calling(requests=None, timeout=PATIENCE, metadata=(), **fields):
            what = requests if method.client_streaming else request(**fields)
            return call(what, timeout=timeout, metadata=(*self._metadata, *metadata))

        return calling
