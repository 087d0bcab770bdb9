"""A client of Envoy's rate limit service on gRPC's C core and Google's protobuf: nothing in it comes from this project.

The messages are declared from the published field numbers. In: an address, and requests as a JSON list. Out: answers as JSON, in order.
"""
import json
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto
ONE, MANY = FIELD.LABEL_OPTIONAL, FIELD.LABEL_REPEATED
TEXT, U32, I64, I32, BOOL, BYTES = (
    FIELD.TYPE_STRING, FIELD.TYPE_UINT32, FIELD.TYPE_INT64, FIELD.TYPE_INT32, FIELD.TYPE_BOOL, FIELD.TYPE_BYTES)

MESSAGES = {
    "Entry": [("key", 1, TEXT, ONE), ("value", 2, TEXT, ONE)],
    "Override": [("requests_per_unit", 1, U32, ONE), ("unit", 2, I32, ONE)],
    "Hits": [("value", 1, FIELD.TYPE_UINT64, ONE)],
    "Descriptor": [("entries", 1, "Entry", MANY), ("limit", 2, "Override", ONE), ("hits_addend", 3, "Hits", ONE),
                   ("is_negative_hits", 4, BOOL, ONE)],
    "Request": [("domain", 1, TEXT, ONE), ("descriptors", 2, "Descriptor", MANY), ("hits_addend", 3, U32, ONE)],
    "Limit": [("requests_per_unit", 1, U32, ONE), ("unit", 2, I32, ONE), ("name", 3, TEXT, ONE)],
    "Duration": [("seconds", 1, I64, ONE), ("nanos", 2, I32, ONE)],
    "Status": [("code", 1, I32, ONE), ("current_limit", 2, "Limit", ONE), ("limit_remaining", 3, U32, ONE),
               ("duration_until_reset", 4, "Duration", ONE)],
    "Header": [("key", 1, TEXT, ONE), ("value", 2, TEXT, ONE)],
    "Response": [("overall_code", 1, I32, ONE), ("statuses", 2, "Status", MANY), ("response_headers_to_add", 3, "Header", MANY),
                 ("raw_body", 5, BYTES, ONE)],
}


def declare():
    file = descriptor_pb2.FileDescriptorProto(name="rls.proto", package="p", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label in fields:
            added = message.field.add(name=field, number=number, label=label)
            if isinstance(kind, str):
                added.type, added.type_name = FIELD.TYPE_MESSAGE, ".p." + kind
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return [factory.GetPrototype(pool.FindMessageTypeByName("p." + name)) for name in ("Request", "Response")]


def main(address, requests):
    Request, Response = declare()
    answers = []
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(
            "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
            request_serializer=Request.SerializeToString,
            response_deserializer=Response.FromString,
        )
        for request in requests:
            try:
                message = json_format.ParseDict(request, Request())
                answers.append(json_format.MessageToDict(call(message, timeout=10)))
            except grpc.RpcError as error:
                answers.append({"error": error.code().name, "details": error.details()})
    print(json.dumps(answers))


main(sys.argv[1], json.loads(sys.argv[2]))
