"""What Spark's container image does, without an image: the executor of an installed Spark."""

from pathlib import Path

from plain_client import Object


def executor(spark: Path) -> object:
    """The command of an executor's pod. ``spark``: where Spark is installed."""

    def command(pod: Object, arguments: list[str], environment: dict[str, str]) -> list[str]:
        assert arguments == ["executor"], arguments
        numbered = sorted(
            (name for name in environment if name.startswith("SPARK_JAVA_OPT_")),
            key=lambda name: int(name.rpartition("_")[2]),
        )
        return [
            "java",
            *(environment[name] for name in numbered),
            "-Xmx450m",
            "-cp",
            f"{spark}/jars/*",
            "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
            *("--driver-url", environment["SPARK_DRIVER_URL"]),
            *("--executor-id", environment["SPARK_EXECUTOR_ID"]),
            *("--cores", environment["SPARK_EXECUTOR_CORES"]),
            *("--app-id", environment["SPARK_APPLICATION_ID"]),
            *("--hostname", "127.0.0.1"),
            *("--resourceProfileId", environment["SPARK_RESOURCE_PROFILE_ID"]),
            *("--podName", environment["SPARK_EXECUTOR_POD_NAME"]),
        ]

    return command
