"""Bronze, silver and gold of the retail pipeline, a task a layer, each its own small program.

Every task is safe to repeat, to overlap with itself and to kill: positions ride in the tables' own commits. So retries need
no clean-up, and a run that was killed is made good by the next.

- Nothing new: the program exits 99 (`--exit-code-if-nothing-new 99`) and the task is marked skipped. Silver and gold run
  all the same (they skip by themselves), so that work a failed run left behind is taken up.
- Exit 1 and 4 (a retry may help) are retried with back-off. Exit 2 (a person must change something) and 3 (an expectation
  with FAIL) fail at once, without retries: the message in the log names the table and the next command.
- Backfill of silver and gold: trigger with `{"starting_version": 0, "only": "silver.orders"}`. A starting version counts only
  for a table that has no position yet.
- Backfill of bronze by offsets: trigger with `{"only": "bronze.orders_again", "starting_offsets": "shop.orders:0=1200",
  "ending_offsets": "shop.orders:0=5000"}`. Only the partitions named are read. A table without a position of a partition begins at
  its starting offset; one that stands within the range goes on from there, so that a retry after a kill takes up what is left; one
  that stands outside is refused. No backfill moves a position back.

Settings come from the environment of the worker: `TRIBUTARY_WAREHOUSE`, `TRIBUTARY_KAFKA_BOOTSTRAP` and the rest of
docs/reference/settings.md. `TRIBUTARY_PIPELINE` names the pipeline: by its key in the bundle around the working folder (this
repository's is `retail_kafka`), a folder of SQL files or a YAML file. The programs are looked for in `LAYER_PROGRAMS`, else on the path.
"""

import os
import subprocess
from datetime import timedelta

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

NOTHING_NEW = 99
A_PERSON_MUST_ACT = {2: "a person must change something", 3: "an expectation with FAIL stopped it"}


def run(layer: str, params: dict) -> None:
    """Runs one layer's program; its exit code decides what becomes of the task."""
    folder = os.environ.get("LAYER_PROGRAMS", "")
    program = os.path.join(folder, f"tributary-{layer}")
    command = [program, "--exit-code-if-nothing-new", str(NOTHING_NEW), "--log-format", "json"]
    if params["only"]:
        command += ["--only", params["only"]]
    if params["starting_version"] is not None and layer != "bronze":
        command += ["--starting-version", str(params["starting_version"])]
    if layer == "bronze":
        for name in ("starting_offsets", "ending_offsets"):
            if params[name]:
                command += [f"--{name.replace('_', '-')}", params[name]]
    code = subprocess.run(command, check=False).returncode
    if code == NOTHING_NEW:
        raise AirflowSkipException(f"{layer}: nothing new")
    if code in A_PERSON_MUST_ACT:
        raise AirflowFailException(f"{layer}: exit code {code}, {A_PERSON_MUST_ACT[code]}; see the log above")
    if code != 0:
        raise AirflowException(f"{layer}: exit code {code}, a retry may help")


@dag(
    dag_id="tributary_retail",
    schedule=timedelta(minutes=5),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(seconds=10), "retry_exponential_backoff": True},
    params={
        "only": Param("", type="string", description="only these tables, separated by commas"),
        "starting_version": Param(None, type=["null", "integer"], minimum=0, description="source version for tables without a position"),
        "starting_offsets": Param("", type="string", description="topic:partition=offset, separated by commas: where bronze begins"),
        "ending_offsets": Param("", type="string", description="topic:partition=offset, separated by commas: where bronze ends"),
    },
    doc_md=__doc__,
    tags=["tributary"],
)
def tributary_retail():
    @task
    def bronze(params: dict | None = None):
        run("bronze", params)

    @task(trigger_rule="none_failed")
    def silver(params: dict | None = None):
        run("silver", params)

    @task(trigger_rule="none_failed")
    def gold(params: dict | None = None):
        run("gold", params)

    bronze() >> silver() >> gold()


tributary_retail()
