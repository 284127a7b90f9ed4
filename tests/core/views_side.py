"""What tests of views share: a configuration with something of everything, and short ways to look."""

from collections.abc import Mapping
from typing import Any

from quadriga.core.runtime.dialect import Dialect
from quadriga.core.views import Views
from quadriga.sim.scripted.script import Script

TREE = """\
partitions:
  - name: default
    nodesortpolicy: {type: binpacking, resourceweights: {vcore: 2.5, gpu: 1}}
    preemption: {enabled: false}
    queues:
      - name: root
        submitacl: '*'
        properties: {colour: blue}
        queues:
          - name: prod
            parent: true
            maxapplications: 4
            resources: {guaranteed: {vcore: 2, memory: 20}, max: {vcore: 6, memory: 60}}
            properties: {priority.offset: "10", preemption.policy: fence}
            childtemplate:
              maxapplications: 2
              properties: {application.sort.policy: fair}
              resources: {max: {vcore: 1}}
            queues:
              - name: web
                maxapplications: 3
                resources: {max: {memory: 40}}
                properties:
                  application.sort.policy: fifo
                  application.sort.priority: disabled
                  preemption.delay: 90s
              - name: batch
                maxapplications: 2
                properties: {priority.policy: fence, priority.offset: "3"}
          - name: dev
"""


def views_of(script: Script, dialect: Dialect = Dialect.YUNIKORN) -> Views:
    return Views(script.scheduler, dialect)


def has(found: Mapping[str, Any], **fields: Any) -> None:
    """These fields are there and say this; ``None`` stands for one that is not there."""
    assert {name: found.get(name) for name in fields} == fields


def app_of(script: Script, name: str) -> dict[str, Any]:
    return dict(views_of(script).application("default", name))


def ask_of(script: Script, app: str, key: str) -> dict[str, Any]:
    return next(dict(a) for a in app_of(script, app)["requests"] if a["allocationKey"] == key)


def log_of(script: Script, app: str, key: str) -> list[str]:
    return [entry["message"] for entry in ask_of(script, app, key)["allocationLog"]]
