from quadriga.si.v1 import si_pb2 as _si_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import Any as _Any, ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Channel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN_CHANNEL: _ClassVar[Channel]
    ALLOCATION: _ClassVar[Channel]
    APPLICATION: _ClassVar[Channel]
    NODE: _ClassVar[Channel]
    CALLBACK: _ClassVar[Channel]
UNKNOWN_CHANNEL: Channel
ALLOCATION: Channel
APPLICATION: Channel
NODE: Channel
CALLBACK: Channel

class UpdateConfigurationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ("rmID",)
    RMID_FIELD_NUMBER: _ClassVar[int]
    rmID: str
    def __init__(self, rmID: _Optional[str] = ...) -> None: ...

class ShutdownResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("rmID", "partition", "applicationID", "allocationKey", "withoutPredicates")
    RMID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONID_FIELD_NUMBER: _ClassVar[int]
    ALLOCATIONKEY_FIELD_NUMBER: _ClassVar[int]
    WITHOUTPREDICATES_FIELD_NUMBER: _ClassVar[int]
    rmID: str
    partition: str
    applicationID: str
    allocationKey: str
    withoutPredicates: bool
    def __init__(self, rmID: _Optional[str] = ..., partition: _Optional[str] = ..., applicationID: _Optional[str] = ..., allocationKey: _Optional[str] = ..., withoutPredicates: bool = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("queue", "state", "reasons", "verdict", "gathers", "reservedNodes", "checks")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    GATHERS_FIELD_NUMBER: _ClassVar[int]
    RESERVEDNODES_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    state: str
    reasons: _containers.RepeatedScalarFieldContainer[str]
    verdict: str
    gathers: bool
    reservedNodes: _containers.RepeatedCompositeFieldContainer[ReservedNode]
    checks: _containers.RepeatedCompositeFieldContainer[FailedCheck]
    def __init__(self, queue: _Optional[str] = ..., state: _Optional[str] = ..., reasons: _Optional[_Iterable[str]] = ..., verdict: _Optional[str] = ..., gathers: bool = ..., reservedNodes: _Optional[_Iterable[_Union[ReservedNode, _Mapping[str, _Any]]]] = ..., checks: _Optional[_Iterable[_Union[FailedCheck, _Mapping[str, _Any]]]] = ...) -> None: ...

class FailedCheck(_message.Message):
    __slots__ = ("about", "subject", "text", "remedy", "verdict")
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    about: str
    subject: str
    text: str
    remedy: str
    verdict: str
    def __init__(self, about: _Optional[str] = ..., subject: _Optional[str] = ..., text: _Optional[str] = ..., remedy: _Optional[str] = ..., verdict: _Optional[str] = ...) -> None: ...

class ReservedNode(_message.Message):
    __slots__ = ("nodeID", "allocationKey")
    NODEID_FIELD_NUMBER: _ClassVar[int]
    ALLOCATIONKEY_FIELD_NUMBER: _ClassVar[int]
    nodeID: str
    allocationKey: str
    def __init__(self, nodeID: _Optional[str] = ..., allocationKey: _Optional[str] = ...) -> None: ...

class CallbackAnswer(_message.Message):
    __slots__ = ("hello", "predicates", "preemptionPredicates", "stateDump", "received")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    PREDICATES_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIONPREDICATES_FIELD_NUMBER: _ClassVar[int]
    STATEDUMP_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    predicates: PredicatesAnswer
    preemptionPredicates: PreemptionPredicatesAnswer
    stateDump: StateDumpAnswer
    received: Counts
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping[str, _Any]]] = ..., predicates: _Optional[_Union[PredicatesAnswer, _Mapping[str, _Any]]] = ..., preemptionPredicates: _Optional[_Union[PreemptionPredicatesAnswer, _Mapping[str, _Any]]] = ..., stateDump: _Optional[_Union[StateDumpAnswer, _Mapping[str, _Any]]] = ..., received: _Optional[_Union[Counts, _Mapping[str, _Any]]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("rmID", "predicates", "preemptionPredicates", "events", "schedulingStates", "stateDump", "received")
    RMID_FIELD_NUMBER: _ClassVar[int]
    PREDICATES_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIONPREDICATES_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULINGSTATES_FIELD_NUMBER: _ClassVar[int]
    STATEDUMP_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    rmID: str
    predicates: bool
    preemptionPredicates: bool
    events: bool
    schedulingStates: bool
    stateDump: bool
    received: Counts
    def __init__(self, rmID: _Optional[str] = ..., predicates: bool = ..., preemptionPredicates: bool = ..., events: bool = ..., schedulingStates: bool = ..., stateDump: bool = ..., received: _Optional[_Union[Counts, _Mapping[str, _Any]]] = ...) -> None: ...

class Counts(_message.Message):
    __slots__ = ("allocation", "application", "node", "callback")
    ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    allocation: int
    application: int
    node: int
    callback: int
    def __init__(self, allocation: _Optional[int] = ..., application: _Optional[int] = ..., node: _Optional[int] = ..., callback: _Optional[int] = ...) -> None: ...

class Order(_message.Message):
    __slots__ = ("first", "messages")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    first: int
    messages: _containers.RepeatedScalarFieldContainer[Channel]
    def __init__(self, first: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[Channel, str]]] = ...) -> None: ...

class Callback(_message.Message):
    __slots__ = ("ready", "predicates", "preemptionPredicates", "events", "schedulingStates", "stateDump", "order", "taken", "refused")
    READY_FIELD_NUMBER: _ClassVar[int]
    PREDICATES_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIONPREDICATES_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULINGSTATES_FIELD_NUMBER: _ClassVar[int]
    STATEDUMP_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    ready: Ready
    predicates: PredicatesQuestion
    preemptionPredicates: PreemptionPredicatesQuestion
    events: Events
    schedulingStates: SchedulingStates
    stateDump: StateDumpQuestion
    order: Order
    taken: Counts
    refused: Refused
    def __init__(self, ready: _Optional[_Union[Ready, _Mapping[str, _Any]]] = ..., predicates: _Optional[_Union[PredicatesQuestion, _Mapping[str, _Any]]] = ..., preemptionPredicates: _Optional[_Union[PreemptionPredicatesQuestion, _Mapping[str, _Any]]] = ..., events: _Optional[_Union[Events, _Mapping[str, _Any]]] = ..., schedulingStates: _Optional[_Union[SchedulingStates, _Mapping[str, _Any]]] = ..., stateDump: _Optional[_Union[StateDumpQuestion, _Mapping[str, _Any]]] = ..., order: _Optional[_Union[Order, _Mapping[str, _Any]]] = ..., taken: _Optional[_Union[Counts, _Mapping[str, _Any]]] = ..., refused: _Optional[_Union[Refused, _Mapping[str, _Any]]] = ...) -> None: ...

class Refused(_message.Message):
    __slots__ = ("channel", "request", "reason")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    channel: Channel
    request: bytes
    reason: str
    def __init__(self, channel: _Optional[_Union[Channel, str]] = ..., request: _Optional[bytes] = ..., reason: _Optional[str] = ...) -> None: ...

class Ready(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PredicatesQuestion(_message.Message):
    __slots__ = ("id", "allocationKey", "allocate", "nodeIDs")
    ID_FIELD_NUMBER: _ClassVar[int]
    ALLOCATIONKEY_FIELD_NUMBER: _ClassVar[int]
    ALLOCATE_FIELD_NUMBER: _ClassVar[int]
    NODEIDS_FIELD_NUMBER: _ClassVar[int]
    id: int
    allocationKey: str
    allocate: bool
    nodeIDs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[int] = ..., allocationKey: _Optional[str] = ..., allocate: bool = ..., nodeIDs: _Optional[_Iterable[str]] = ...) -> None: ...

class PredicatesAnswer(_message.Message):
    __slots__ = ("id", "reasons")
    ID_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    id: int
    reasons: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[int] = ..., reasons: _Optional[_Iterable[str]] = ...) -> None: ...

class PreemptionPredicatesQuestion(_message.Message):
    __slots__ = ("id", "args")
    ID_FIELD_NUMBER: _ClassVar[int]
    ARGS_FIELD_NUMBER: _ClassVar[int]
    id: int
    args: _containers.RepeatedCompositeFieldContainer[_si_pb2.PreemptionPredicatesArgs]
    def __init__(self, id: _Optional[int] = ..., args: _Optional[_Iterable[_Union[_si_pb2.PreemptionPredicatesArgs, _Mapping[str, _Any]]]] = ...) -> None: ...

class PreemptionPredicatesAnswer(_message.Message):
    __slots__ = ("id", "responses")
    ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    id: int
    responses: _containers.RepeatedCompositeFieldContainer[_si_pb2.PreemptionPredicatesResponse]
    def __init__(self, id: _Optional[int] = ..., responses: _Optional[_Iterable[_Union[_si_pb2.PreemptionPredicatesResponse, _Mapping[str, _Any]]]] = ...) -> None: ...

class Events(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_si_pb2.EventRecord]
    def __init__(self, events: _Optional[_Iterable[_Union[_si_pb2.EventRecord, _Mapping[str, _Any]]]] = ...) -> None: ...

class SchedulingStates(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[_si_pb2.UpdateContainerSchedulingStateRequest]
    def __init__(self, states: _Optional[_Iterable[_Union[_si_pb2.UpdateContainerSchedulingStateRequest, _Mapping[str, _Any]]]] = ...) -> None: ...

class StateDumpQuestion(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: int
    def __init__(self, id: _Optional[int] = ...) -> None: ...

class StateDumpAnswer(_message.Message):
    __slots__ = ("id", "json", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: int
    json: str
    error: str
    def __init__(self, id: _Optional[int] = ..., json: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class StepRequest(_message.Message):
    __slots__ = ("rmID", "now", "advance", "requests", "schedule", "limit")
    RMID_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    ADVANCE_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    rmID: str
    now: int
    advance: bool
    requests: _containers.RepeatedScalarFieldContainer[Channel]
    schedule: bool
    limit: int
    def __init__(self, rmID: _Optional[str] = ..., now: _Optional[int] = ..., advance: bool = ..., requests: _Optional[_Iterable[_Union[Channel, str]]] = ..., schedule: bool = ..., limit: _Optional[int] = ...) -> None: ...

class StepResponse(_message.Message):
    __slots__ = ("messages", "nextDeadline", "unfinished", "refused")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXTDEADLINE_FIELD_NUMBER: _ClassVar[int]
    UNFINISHED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedScalarFieldContainer[Channel]
    nextDeadline: int
    unfinished: bool
    refused: _containers.RepeatedCompositeFieldContainer[Refusal]
    def __init__(self, messages: _Optional[_Iterable[_Union[Channel, str]]] = ..., nextDeadline: _Optional[int] = ..., unfinished: bool = ..., refused: _Optional[_Iterable[_Union[Refusal, _Mapping[str, _Any]]]] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("place", "reason")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    place: int
    reason: str
    def __init__(self, place: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...
