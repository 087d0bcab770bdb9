"""Three requests of one user, under a limit of two a minute: python3 check.py"""
import json
import os
import urllib.error
import urllib.request
import uuid


class Limiter:
    def __init__(self, server, token=None, timeout=1):
        self.server, self.timeout = server, timeout
        self.headers = {"content-type": "application/json"}
        if token:
            self.headers["authorization"] = f"Bearer {token}"

    def check(self, attributes, cost=1):
        """Asks twice at most. The id makes the second try safe: one request is charged once."""
        body = {"attributes": attributes, "cost": cost, "id": str(uuid.uuid4())}
        try:
            return self.ask("/v1/check", body)
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError):
                raise RuntimeError(error.read().decode()) from error
            return self.ask("/v1/check", body)

    def ask(self, path, body):
        request = urllib.request.Request(self.server + path, json.dumps(body).encode(), self.headers)
        with urllib.request.urlopen(request, timeout=self.timeout) as response:
            return json.load(response)


limiter = Limiter(
    os.environ.get("SLUICE_SERVER", "http://127.0.0.1:8080"),
    token=os.environ.get("SLUICE_API_TOKEN"),
    timeout=float(os.environ.get("SLUICE_TIMEOUT", "1")),
)
for _ in range(3):
    try:
        decision = limiter.check({"user": "42"})
    except OSError:
        # No answer is not a refusal: this program lets the request pass. A login form would not.
        print("not asked, passes")
        continue
    if decision["allowed"]:
        print(f"allowed, {decision['remaining']} left")
    else:
        print(f"refused by {decision['rule']}")
