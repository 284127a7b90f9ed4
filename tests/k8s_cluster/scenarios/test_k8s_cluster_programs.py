"""Real programs under our scheduler: Spark with executors of its own, Dask with its operator."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from control_plane import ControlPlane, Process
from manifests import APP, GROUP, GROUPS, POLICY, is_placeholder, pod
from plain_client import MERGE, APIError, Object
from process_kubelet import ProcessKubelet, node
from real_programs import RealPrograms
from scheduler_process import SCHEDULER, wait
from spark_image import executor
from whole_cluster import Cluster

Kubelets = Callable[..., ProcessKubelet]

SUM = """
from pyspark.sql import SparkSession
session = SparkSession.builder.getOrCreate()
print("SUM", session.sparkContext.parallelize(range(1000), 8).map(lambda x: x * x).sum())
session.stop()
"""
RESULT = f"SUM {sum(x * x for x in range(1000))}"


@pytest.fixture
def spark_kubelet(kubelet: Kubelets, real_programs: RealPrograms) -> ProcessKubelet:
    """Two nodes that can run Spark's executors and drivers."""
    nodes = node("a", cpu="4"), node("b", cpu="4")
    return kubelet(
        *nodes, images={"spark": executor(real_programs.spark)}, **of_spark(real_programs)
    )


def submit(
    plane: ControlPlane, programs: RealPrograms, script: Path, namespace: str, **more: str
) -> list[str]:
    """The command that runs this script on executors in the namespace, in client mode."""
    script.write_text(SUM)
    settings = {
        "spark.master": f"k8s://{plane.server}",
        "spark.submit.deployMode": "client",
        "spark.kubernetes.namespace": namespace,
        "spark.kubernetes.container.image": "spark",
        "spark.kubernetes.scheduler.name": SCHEDULER,
        "spark.kubernetes.authenticate.oauthToken": "admin-token",
        "spark.kubernetes.authenticate.caCertFile": str(plane.authority),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "450m",
        "spark.executor.cores": "1",
        "spark.kubernetes.executor.request.cores": "500m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.ui.enabled": "false",
        **{name.replace("__", "-").replace("_", "."): value for name, value in more.items()},
    }
    options = [part for each in settings.items() for part in ("--conf", "=".join(each))]
    return [str(programs.spark / "bin" / "spark-submit"), *options, str(script)]


def of_spark(programs: RealPrograms) -> dict[str, str]:
    """Variables of the environment."""
    python = {"PYSPARK_PYTHON": str(programs.python), "SPARK_LOCAL_IP": "127.0.0.1"}
    # Half of a short run's processor time would be the second compiler's.
    java = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    return {"SPARK_HOME": str(programs.spark), **python, **java}


def test_t20_spark_in_client_mode_beside_a_job_that_is_too_large(
    cluster: Cluster, spark_kubelet: ProcessKubelet, real_programs: RealPrograms, tmp_path: Path
) -> None:
    scheduler = cluster.quadriga()
    # Larger than any node, of the same queue, and first.
    for index in range(3):
        cluster.create(pod(f"large-{index}", "large", cpu="100"))
    cluster.until(
        lambda present: all(
            any(each["type"] == "PodScheduled" for each in one["status"].get("conditions", ()))
            for one in present
        )
    )
    script = tmp_path / "sum.py"
    command = submit(
        cluster.plane, real_programs, script, cluster.namespace, spark_executor_instances="2"
    )
    done = subprocess.run(
        command,
        env={**os.environ, **of_spark(real_programs)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert RESULT in done.stdout, done.stderr[-4000:]
    executors = {
        each["metadata"]["name"]
        for _, each in cluster.changes()
        if each["metadata"].get("labels", {}).get("spark-role") == "executor"
        and each["spec"].get("nodeName")
    }
    assert len(executors) == 2
    # The label spark-app-selector is the application.
    cluster.until(lambda present: len(present) == 3, what="only the large pods are left")
    scheduler.wait_idle()


def test_t20_a_spark_gang_of_a_driver_and_four_executors(
    cluster: Cluster, spark_kubelet: ProcessKubelet, real_programs: RealPrograms, tmp_path: Path
) -> None:
    scheduler = cluster.quadriga()
    # As Spark makes them: 450 MiB and the overhead of 384 MiB at least.
    groups = [
        {"name": "driver", "minMember": 1, "minResource": {"cpu": "500m", "memory": "512Mi"}},
        {"name": "executor", "minMember": 4, "minResource": {"cpu": "500m", "memory": "834Mi"}},
    ]
    command = submit(
        cluster.plane,
        real_programs,
        tmp_path / "sum.py",
        cluster.namespace,
        spark_executor_instances="4",
        spark_kubernetes_driver_pod_name="driver",
        **{
            f"spark.kubernetes.executor.label.{APP}": "spark-gang",
            f"spark.kubernetes.executor.annotation.{GROUP}": "executor",
        },
    )
    driver = pod(
        "driver",
        "spark-gang",
        cpu="500m",
        memory="512Mi",
        run="process",
        annotations={
            GROUP: "driver",
            GROUPS: json.dumps(groups),
            POLICY: "placeholderTimeoutInSeconds=120 gangSchedulingStyle=Hard",
        },
    )
    driver["spec"]["containers"][0]["command"] = command
    cluster.create(driver)
    cluster.until(
        lambda present: any(
            each["metadata"]["name"] == "driver"
            and each["status"].get("phase") in ("Succeeded", "Failed")
            for each in present
        ),
        seconds=240,
    )
    assert RESULT in spark_kubelet.output("driver")
    # All placeholders held their room before the driver was bound.
    held: set[str] = set()
    for _, each in cluster.changes():
        if is_placeholder(each) and each["spec"].get("nodeName"):
            held.add(each["metadata"]["name"])
        if each["metadata"]["name"] == "driver" and each["spec"].get("nodeName"):
            break
    assert len(held) == 5
    cluster.until(lambda present: {each["metadata"]["name"] for each in present} <= {"driver"})
    scheduler.wait_idle()


DASK = "/apis/kubernetes.dask.org/v1/namespaces/{}/{}"
WORK = """
from distributed import Client
client = Client("tcp://127.0.0.1:{port}", timeout=60)
client.wait_for_workers({workers}, timeout=60)
print("SUM", sum(client.gather(client.map(lambda x: x * x, range(1000)))))
client.close()
"""


@contextmanager
def operator(plane: ControlPlane, programs: RealPrograms, folder: Path) -> Iterator[Process]:
    command = [programs.python, "-m", "kopf", "run", "-m", "dask_kubernetes.operator.controller"]
    process = Process(
        "operator", [*command, "--all-namespaces", "--standalone"], folder / "operator.log"
    )
    process.start(
        {**os.environ, "KUBECONFIG": str(plane.kubeconfig()), "PYTHONPATH": str(folder / "site")}
    )
    try:
        yield process
    finally:
        print(process.tail())
        process.kill()


def dask_cluster(programs: RealPrograms, port: int, workers: int) -> Object:
    """As the operator's documentation describes one, with a gang's annotations and our name."""
    groups = [
        {"name": "scheduler", "minMember": 1, "minResource": {"cpu": "200m", "memory": "200Mi"}},
        {"name": "worker", "minMember": workers, "minResource": {"cpu": "200m", "memory": "200Mi"}},
    ]

    def part(name: str, *arguments: str) -> Object:
        return {
            "metadata": {
                "labels": {APP: "team"},
                "annotations": {GROUP: name, GROUPS: json.dumps(groups)},
            },
            "spec": {
                "schedulerName": SCHEDULER,
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {
                        "name": name,
                        "image": "dask",
                        "command": [str(programs.python), "-m", *arguments],
                        "ports": [
                            {"name": each, "containerPort": number}
                            for each, number in ports.items()
                            if name == "scheduler"
                        ],
                        "resources": {"requests": {"cpu": "200m", "memory": "200Mi"}},
                    }
                ],
            },
        }

    ports = {"tcp-comm": port, "http-dashboard": port + 1}
    return {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskCluster",
        "metadata": {"name": "team"},
        "spec": {
            "worker": {
                "replicas": workers,
                **part(
                    "worker",
                    "distributed.cli.dask_worker",
                    *("--name", "$(DASK_WORKER_NAME)", "--nthreads", "1"),
                    *("--no-dashboard", "--memory-limit", "0", "--no-nanny"),
                ),
            },
            "scheduler": {
                **part(
                    "scheduler",
                    "distributed.cli.dask_scheduler",
                    *("--host", "127.0.0.1", "--port", str(port)),
                    *("--dashboard-address", f"127.0.0.1:{port + 1}"),
                ),
                "service": {
                    "type": "ClusterIP",
                    "selector": {"dask.org/cluster-name": "team"},
                    "ports": [
                        {"name": name, "port": number, "protocol": "TCP", "targetPort": name}
                        for name, number in ports.items()
                    ],
                },
            },
        },
    }


def test_t21_a_cluster_of_the_dask_operator(
    cluster: Cluster, real_programs: RealPrograms, tmp_path: Path
) -> None:
    yaml = pytest.importorskip("yaml")
    site = tmp_path / "site"
    site.mkdir()
    here = Path(__file__).parents[1]
    shutil.copy(here / "loopback_names.py", site / "sitecustomize.py")
    scheduler = cluster.quadriga()
    cluster.kubelet(node("a", cpu="4"), node("b", cpu="4"), PYTHONPATH=str(site))
    definitions = (
        real_programs.packages
        / "dask_kubernetes/operator/deployment/helm/dask-kubernetes-operator/crds"
    )
    for each in sorted(definitions.glob("*.yaml")):
        try:
            cluster.admin.create(yaml.safe_load(each.read_text()))
        except APIError as error:
            if error.status != 409:
                raise

    def served() -> bool:
        try:
            cluster.admin.request("GET", DASK.format(cluster.namespace, "daskclusters"))
        except APIError:
            return False
        return True

    wait(served, "the operator's kinds are served")

    def running(count: int) -> None:
        cluster.until(
            lambda present: (
                len(present) == count
                and all(each["status"].get("phase") == "Running" for each in present)
                and not any(map(is_placeholder, present))
            ),
            seconds=60,
        )

    def work(workers: int) -> None:
        code = WORK.format(port=8786, workers=workers)
        done = subprocess.run(
            [str(real_programs.python), "-c", code],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert RESULT in done.stdout, done.stderr

    def scale(workers: int) -> None:
        group = DASK.format(cluster.namespace, "daskworkergroups/team-default")
        cluster.admin.request(
            "PATCH", group, {"spec": {"worker": {"replicas": workers}}}, content=MERGE
        )

    with operator(cluster.plane, real_programs, tmp_path):
        cluster.admin.request(
            "POST",
            DASK.format(cluster.namespace, "daskclusters"),
            dask_cluster(real_programs, 8786, 4),
        )
        running(5)
        work(4)
        scale(8)
        running(9)
        work(8)
        scale(4)
        running(5)
        work(4)
        cluster.admin.request("DELETE", DASK.format(cluster.namespace, "daskclusters/team"))
        cluster.until(lambda present: not present, seconds=60)
    scheduler.wait_idle()
