"""The team's Celery app, as it is before Oncue comes and as it stays: nothing in it knows of Oncue.

APP_BROKER_URL   the broker (default amqp://guest:guest@localhost//)
APP_RAN_LOG      a file that each task that ran adds a line to (default ran.jsonl)
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from celery import Celery
from celery.exceptions import Reject
from celery.signals import worker_init
from kombu import Exchange, Queue

RAN = Path(os.environ.get("APP_RAN_LOG", "ran.jsonl"))
DEAD = Queue("celery.dead", durable=True)

app = Celery("emails", broker=os.environ.get("APP_BROKER_URL", "amqp://guest:guest@localhost//"))
app.conf.broker_connection_retry_on_startup = True
app.conf.worker_prefetch_multiplier = 1
app.conf.task_ignore_result = True
app.conf.task_queues = [
    Queue(
        "celery",
        Exchange("celery", type="direct"),
        routing_key="celery",
        queue_arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD.name},
    )
]


@worker_init.connect
def declare_dead_letters(**_: Any) -> None:
    """Make the queue for what is rejected, which no worker reads, before anything can be."""
    with app.connection_for_write() as connection:
        DEAD(connection.default_channel).queue_declare()


@app.task(name="emails.trial_ending", bind=True, acks_late=True)
def trial_ending(self: Any, key: str, email: str, **_: Any) -> None:
    """Mail somebody whose trial is about to end. An address that cannot be right is rejected: to `celery.dead`."""
    if email.endswith(".bad"):
        raise Reject(f"no such mail domain: {email}", requeue=False)
    line = json.dumps({"id": self.request.id, "task": self.name, "key": key, "email": email})
    with RAN.open("a", encoding="utf-8") as ran:  # one write of one line: workers of one pool share the file
        ran.write(line + "\n")
