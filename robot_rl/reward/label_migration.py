"""Migration of label databases of earlier versions."""

from __future__ import annotations

import json
import sqlite3

from robot_rl.reward.query import canonical

VERSION = 2
"""Version of the database that this program writes."""


def add_server_url(db: sqlite3.Connection) -> None:
    """Migrate version 1, whose labellers were known by the name of their model alone.

    The URL of the server becomes part of their identity. It was kept with their settings; where it was not, it stays
    unknown, and is empty. Answers keep their keys: they stay what their labels refer to.
    """
    for name, identity, settings in db.execute("SELECT name, identity, settings FROM labeller").fetchall():
        who = json.loads(identity)
        if who.get("backend") == "openai" and "url" not in who:
            endpoint = json.loads(settings).get("endpoint") or {}
            who["url"] = str(endpoint.get("url", "")).rstrip("/")
            db.execute("UPDATE labeller SET identity = ? WHERE name = ?", (canonical(who), name))
    db.execute(f"PRAGMA user_version={VERSION}")
