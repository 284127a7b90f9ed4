"""Ours against the specification: nothing is missing or changed, and what is more is listed."""

import re
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from quadriga.si.v1 import si_pb2
from tests.si.facts import facts_of


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
