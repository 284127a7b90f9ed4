"""What the lifecycles and the message flows look like.

``render`` draws a lifecycle, plain or with a test run's coverage, ``render_path`` one entity's way
through it, ``sequence`` a message flow, and ``write_gallery`` all lifecycles. Text formats are
written here, deterministically; images are drawn by graphviz.
"""

from quadriga.diagrams.errors import DiagramError
from quadriga.diagrams.gallery import GALLERY_FORMATS, write_gallery
from quadriga.diagrams.paint import Step
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
    "render",
    "render_path",
    "sequence",
    "write_gallery",
]
