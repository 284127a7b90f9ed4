"""Messages that nobody in his right mind would send; the same seed gives the same ones."""

from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

_Field = FieldDescriptor
_INTEGERS = {
    _Field.TYPE_INT32: (-(2**31), 2**31 - 1),
    _Field.TYPE_INT64: (-(2**63), 2**63 - 1),
    _Field.TYPE_UINT32: (0, 2**32 - 1),
    _Field.TYPE_UINT64: (0, 2**64 - 1),
}
#: what the other messages speak of, so that they meet
KNOWN = ("app-1", "app-2", "n1", "n2", "pod-1", "pod-2", "pod-3", "pod-1-0", "pod-2-0", "workers")
PLACES = ("default", "root.default", "root", "root.a.b", "[rm-1]default", "other")
STRANGE = (
    *("", " ", "\x00", "a\nb\r\tFAKE LOG LINE", "\x1b[31mred\x1b[0m", "\u202egnp.exe"),
    *("\U0001f40e" * 20, "x" * 300, "y" * 20_000, "'; DROP TABLE nodes; --"),
    '[{"name": "w", "minMember": -1, "minResource": {"cpu": "-5"}}]',
    *"""
    ../../etc/passwd %s%n{0}{x.__class__} root.. . .. <script>alert(1)</script> {"a":1} NaN true Hard
    kubernetes.io/meta/requiredNode -1 99999999999999999999 Soft
    """.split(),
)
#: keys that mean something
TAGS = """
kubernetes.io/meta/requiredNode kubernetes.io/meta/namespace kubernetes.io/label/applicationID
namespace.resourcequota namespace.resourceguaranteed namespace.max_apps application.stateaware.disable
yunikorn.apache.org/allow-preemption si/hostname si/node-partition ready creationTime
event.trackingEnabled event.requestCapacity scheduler.disableReservation vcore memory
""".split()


class Hostile:
    """Makes messages. ``mine`` is the id of the RM that sends most of them."""

    def __init__(self, seed: int, mine: str) -> None:
        self.random = Random(seed)
        self.mine = mine

    def message(self, kind: type[Any], depth: int = 0) -> Any:
        """A message of this type."""
        message = kind()
        self.fill(message, depth)
        return message

    def data(self, kind: type[Any]) -> bytes:
        """The bytes of one; now and then broken, or with fields that nobody knows."""
        random = self.random
        data = bytearray(self.message(kind).SerializeToString())
        chance = random.random()
        if chance < 0.05:
            return random.randbytes(random.choice((1, 2, 10, 1000)))
        if chance < 0.15 and data:
            for _ in range(random.randint(1, 4)):
                data[random.randrange(len(data))] = random.randrange(256)
        elif chance < 0.2:
            del data[random.randrange(len(data) + 1) :]
        elif chance < 0.3:  # field 1000 as bytes, field 1001 as a number
            data += b"\xc2\x3e\x03abc" + b"\xc8\x3e\x2a"
        elif chance < 0.32:  # a group that never ends
            data += b"\x0b" * random.choice((1, 50, 200))
        return bytes(data)

    def fill(self, message: Any, depth: int) -> None:
        random = self.random
        for field in message.DESCRIPTOR.fields:
            if field.name == "rmID":
                message.rmID = self._whose()
            elif random.random() < (0.25 if depth < 4 else 0.9):
                continue
            elif field.is_repeated if hasattr(field, "is_repeated") else field.label == 3:
                self._fill_many(message, field, depth)
            elif field.message_type is not None:
                self.fill(getattr(message, field.name), depth + 1)
                getattr(message, field.name).SetInParent()
            else:
                setattr(message, field.name, self.value(field))

    def _fill_many(self, message: Any, field: Any, depth: int) -> None:
        random = self.random
        many = getattr(message, field.name)
        entry = field.message_type
        count = random.choice((0, 1, 1, 1, 2, 3, 8))
        if entry is not None and entry.GetOptions().map_entry:
            value = entry.fields_by_name["value"]
            for _ in range(random.choice((count, count, 100) if depth < 3 else (1,))):
                key = random.choice((*TAGS, *STRANGE)) if random.random() < 0.9 else self.text()
                if value.message_type is not None:
                    self.fill(many[key], depth + 1)
                else:
                    many[key] = self.value(value)
        elif entry is not None:
            for _ in range(count):
                self.fill(many.add(), depth + 1)
            if many and random.random() < 0.3:
                many.add().CopyFrom(many[0])  # the same once more
        else:
            many.extend(self.value(field) for _ in range(count))

    def value(self, field: Any) -> Any:
        """What a field without parts may hold."""
        random = self.random
        if field.type in _INTEGERS:
            low, high = _INTEGERS[field.type]
            near = random.choice((low, low + 1, -1, 0, 1, 2, 1000, high - 1, high))
            return min(high, max(low, near))
        if field.type == _Field.TYPE_ENUM:
            known = [value.number for value in field.enum_type.values]
            return random.choice((*known, *known, -1, 77, 2**31 - 1))
        if field.type == _Field.TYPE_BOOL:
            return random.random() < 0.5
        if field.type == _Field.TYPE_STRING:
            return self.text(field.name)
        raise AssertionError(f"{field.full_name} has a type that nobody thought of")

    def text(self, name: str = "") -> str:
        random = self.random
        if name == "config":
            return random.choice((*_CONFIGS, *STRANGE))
        if random.random() < 0.7:
            near = PLACES if "artition" in name or "ueue" in name else KNOWN
            return random.choice(near)
        return random.choice((*STRANGE, *PLACES, *KNOWN))

    def _whose(self) -> str:
        return self.random.choice((self.mine,) * 12 + ("good", "nobody", "", "\x00", "z" * 400))


_QUEUE = "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n"
_CONFIGS = (
    *("", _QUEUE, "partitions: []", "partitions: {{{", "a: &a [*a]"),
    _QUEUE + "        queues:\n          - name: default\n",
    _QUEUE + "        queues:\n          - name: a\n            resources: {max: {vcore: 1}}\n",
    *("!!python/object/apply:os.system ['true']", "[" * 2_000, "? " * 500, "- " * 500),
)
