"""What is expected, and what a failed call says."""

import grpc

import messages

_RPC = messages.package(
    "google.rpc",
    {
        "Status": {
            "code": (1, "int32"),
            "message": (2, "string"),
            "details": (3, "repeated .google.protobuf.Any"),
        },
        "ErrorInfo": {
            "reason": (1, "string"),
            "domain": (2, "string"),
            "metadata": (3, "map"),
        },
    },
)


def expect(found, wanted):
    """Fails unless both are equal."""
    if found != wanted:
        raise AssertionError(f"{found!r}, not {wanted!r}")


def expect_that(holds, what):
    """Fails unless it holds."""
    if not holds:
        raise AssertionError(what)


class Failure:
    """The status of a failed call, with the details that it carries."""

    def __init__(self, code, details, contract):
        status = _RPC["Status"].FromString(details)
        expect(status.code, code)
        self.code, self._details, self._contract = code, list(status.details), contract

    def _detail(self, name, kind):
        for detail in self._details:
            if detail.type_url == f"type.googleapis.com/{name}":
                return kind.FromString(detail.value)
        raise AssertionError(f"no {name} in {[detail.type_url for detail in self._details]}")

    def info(self):
        """The `google.rpc.ErrorInfo`."""
        return self._detail("google.rpc.ErrorInfo", _RPC["ErrorInfo"])

    def detail(self):
        """The `ErrorDetail` of the contract."""
        name = "xihan.caching.v1.ErrorDetail"
        return self._detail(name, self._contract.message(name))

    def expect(self, code, reason):
        """Fails unless it is this status for this reason."""
        expect(grpc_code(self.code), code)
        info = self.info()
        expect((info.reason, info.domain), (reason, "caching.xihan"))
        return self


def grpc_code(number):
    """The status code with this number."""
    return next(code for code in grpc.StatusCode if code.value[0] == number)


def failed(call):
    """The error that a call ends with; a stream is read until it does."""
    try:
        answer = call()
        if hasattr(answer, "__iter__"):
            answer = list(answer)
    except grpc.RpcError as error:
        return error
    raise AssertionError(f"succeeded: {answer!r}")


def refused(contract, call, code, reason):
    """The failure that a call ends with, which has to be this one."""
    error = failed(call)
    expect(error.code(), code)
    trailers = dict(error.trailing_metadata())
    expect_that("grpc-status-details-bin" in trailers, f"no details in {trailers}")
    failure = Failure(code.value[0], trailers["grpc-status-details-bin"], contract)
    return failure.expect(code, reason)
