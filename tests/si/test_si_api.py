"""The interface within a process, the names both sides agree on, and ours against the specification."""

import inspect
import re
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from quadriga import si
from quadriga.si import constants
from quadriga.si.api import has_own
from quadriga.si.constants import TagKey, build_tag_key, parse_tag_key
from quadriga.si.v1 import si_pb2
from tests.si.facts import facts_of


def methods(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


def test_i3_i4_m9_calls_and_callbacks_are_each_in_one_place() -> None:
    assert methods(si.SchedulerAPI) == set(
        "register_resource_manager update_allocation update_application update_node"
        " update_configuration".split()
    )
    register = inspect.signature(si.SchedulerAPI.register_resource_manager, eval_str=True)
    assert list(register.parameters) == ["self", "request", "callback"]
    assert register.return_annotation is si.RegisterResourceManagerResponse
    assert methods(si.ResourceManagerCallback) == set(
        "update_allocation update_application update_node predicates preemption_predicates"
        " send_event update_container_scheduling_state".split()
    )
    assert methods(si.StateDumpPlugin) == {"get_state_dump"}


def test_x24_null_callback_ignores_news_and_answers_as_the_scheduler_assumes() -> None:
    rm: si.ResourceManagerCallback = si.NullCallback()
    assert isinstance(rm, si.ResourceManagerCallback)
    for name in methods(si.ResourceManagerCallback):
        ours, theirs = (getattr(of, name) for of in (si.NullCallback, si.ResourceManagerCallback))
        assert inspect.signature(ours) == inspect.signature(theirs)
    rm.update_allocation(si.AllocationResponse())
    rm.update_application(si.ApplicationResponse())
    rm.update_node(si.NodeResponse())
    rm.send_event([si.EventRecord()])
    rm.update_container_scheduling_state(si.UpdateContainerSchedulingStateRequest())
    assert rm.predicates(si.PredicatesArgs(allocationKey="a", nodeID="n", allocate=True)) is None
    args = si.PreemptionPredicatesArgs(preemptAllocationKeys=["x", "y", "z"], startIndex=1)
    answer = rm.preemption_predicates(args)
    assert (answer.success, answer.index) == (True, 1)


def test_i4_only_what_differs_from_the_null_callback_is_the_callbacks_own() -> None:
    class Careful(si.NullCallback):
        def predicates(self, args: si.PredicatesArgs) -> str | None:
            return "no"

        def get_state_dump(self) -> str:
            return "{}"

    assert isinstance(Careful(), si.StateDumpPlugin)
    assert not isinstance(si.NullCallback(), si.StateDumpPlugin)
    assert has_own(Careful(), "predicates")
    assert has_own(Careful(), "get_state_dump")
    assert not has_own(Careful(), "preemption_predicates")
    assert not has_own(si.NullCallback(), "get_state_dump")
    assert not has_own(object(), "send_event")
    late = si.NullCallback()
    vars(late)["predicates"] = lambda args: None
    assert has_own(late, "predicates")


def test_i34_constants(specified: set[str]) -> None:
    """By the names of the specification, which has no underscores."""
    values = {name: value for name, value in vars(constants).items() if name.isupper()}
    found = {f"const {name.replace('_', '')} = {value}" for name, value in values.items()}
    assert found == {fact for fact in specified if fact.startswith("const ")}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("kubernetes.io/meta/namespace", ("kubernetes.io/", "meta/", "namespace")),
        ("yunikorn.apache.org/creationTime", ("yunikorn.apache.org/", "", "creationTime")),
        ("a.io/label/app.a.io/name", ("a.io/", "label/", "app.a.io/name")),
    ],
)
def test_i35_tag_key_is_domain_group_key(text: str, parts: tuple[str, str, str]) -> None:
    tag = parse_tag_key(text)
    assert tag == TagKey(*parts)
    assert str(tag) == text
    assert build_tag_key(tag.domain, tag.key, group=tag.group) == text
    bare = (part.removesuffix("/") for part in (tag.domain, tag.group))
    assert build_tag_key(next(bare), tag.key, group=next(bare)) == text


@pytest.mark.parametrize("text", ["", "/", "namespace", "/meta/key", "domain/", "a//b", "a/b/"])
def test_i35_other_texts_are_no_tag_keys(text: str) -> None:
    with pytest.raises(ValueError, match="is not domain"):
        parse_tag_key(text)


@pytest.mark.parametrize(
    ("domain", "group", "key"),
    [
        ("", "", "key"),
        ("domain", "", ""),
        ("domain", "", "not/grouped"),
        ("do/main", "", "key"),
        ("do/main", "group", "key"),
        ("domain", "gr/oup", "key"),
        ("domain", "/", "key"),
    ],
)
def test_i35_parts_that_cannot_be_read_back_are_refused(domain: str, group: str, key: str) -> None:
    with pytest.raises(ValueError, match=r"not a tag key|is not domain"):
        build_tag_key(domain, key, group=group)


def blocks(document: str, language: str) -> str:
    """All code blocks of one language, one after the other."""
    found = re.findall(rf"^```{language}\n(.*?)^```", document, re.DOTALL | re.MULTILINE)
    assert found, f"the document has no {language} block"
    return "\n".join(found)


@pytest.fixture(scope="module")
def document_file(spec_document: str, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The protocol of the document, compiled: a serialized FileDescriptorProto."""
    reason = "grpcio-tools compiles the document's protocol"
    protoc = pytest.importorskip("grpc_tools.protoc", reason=reason)
    folder = tmp_path_factory.mktemp("document")
    (folder / "document.proto").write_text(blocks(spec_document, "protobuf"), encoding="utf-8")
    google = Path(protoc.__file__).parent / "_proto"
    out = folder / "document.binpb"
    arguments = [f"-I{folder}", f"-I{google}", f"--descriptor_set_out={out}", "document.proto"]
    assert protoc.main(["protoc", *arguments]) == 0
    (file,) = FileDescriptorSet.FromString(out.read_bytes()).file
    serialized: bytes = file.SerializeToString()
    return serialized


@pytest.fixture(scope="module")
def document(spec_document: str, document_file: bytes) -> set[str]:
    """The facts of the document."""
    # In a pool of its own: it declares the names that our file declares in the default one.
    pool = DescriptorPool()
    pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(document_file)
    file = FileDescriptorProto()
    pool.FindFileByName("document.proto").CopyToProto(file)
    constants = re.findall(r'^\s*(\w+)\s*=\s*"(.*)"', blocks(spec_document, "constants"), re.M)
    consts = {f"const {name.upper()} = {value}" for name, value in constants}
    return facts_of(file) | consts | api_facts(blocks(spec_document, "golang"))


def api_facts(golang: str) -> set[str]:
    """The interfaces and their methods, with the names of the parameters."""
    facts, interface = set(), ""
    for line in golang.splitlines():
        if opened := re.match(r"type (\w+) interface", line):
            interface = opened[1]
            facts.add(f"api {interface}")
        elif method := re.match(r"\s*(\w+)\((.*?)\)", line):
            parameters = [part.split()[0] for part in method[2].split(",") if part]
            facts.add(f"api {interface}.{method[1]}({', '.join(parameters)})")
    return facts


def test_table_of_facts_is_what_the_document_says(document: set[str], table: set[str]) -> None:
    assert sorted(table) == sorted(document)


def test_every_fact_of_the_table_is_in_ours_and_what_ours_has_in_addition_is_listed(
    specified: set[str], ours: set[str]
) -> None:
    assert len(ours) > 200
    assert sorted(ours) == sorted(specified)


def test_default_json_names_differ_for_the_misspelled_field_only(document_file: bytes) -> None:
    for message in FileDescriptorProto.FromString(document_file).message_type:
        mine = si_pb2.DESCRIPTOR.message_types_by_name[message.name].fields_by_name
        for field in message.field:
            fixed = "applicationID" if field.name == "applicartionID" else field.json_name
            assert mine[field.name].json_name == fixed
