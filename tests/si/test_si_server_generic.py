"""A client that has nothing of ours: what it knows it has from the reflection service, as grpcurl."""

from __future__ import annotations
