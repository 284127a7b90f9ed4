"""Diagrams of lifecycles and of message flows.

``render`` draws a lifecycle, plain or with the coverage of a test run. ``render_path`` draws the path
of one entity through its lifecycle, ``sequence`` a message flow, and ``write_gallery`` every
lifecycle. The text formats are written here and are deterministic; graphviz draws the images.
``read_json`` makes a lifecycle of a document again.
"""

from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.gallery import GALLERY_FORMATS, write_gallery
from quadriga.diagrams.paint import Step
from quadriga.diagrams.reading import functions_of, read_json
from quadriga.diagrams.sequence import SEQUENCE_FORMATS, Message, sequence
from quadriga.diagrams.state import FORMATS, IMAGES, render, render_path

__all__ = [
    "FORMATS",
    "GALLERY_FORMATS",
    "IMAGES",
    "SEQUENCE_FORMATS",
    "DiagramError",
    "Message",
    "Step",
    "functions_of",
    "read_json",
    "render",
    "render_path",
    "sequence",
    "write_gallery",
]
