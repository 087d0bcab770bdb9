"""Each call comes from an address of its own: wrong tokens of one address are slowed, and this test tries many."""

from itertools import count

from requests.adapters import HTTPAdapter

numbers = count()
send = HTTPAdapter.send


def send_from_own_address(self, request, **options):
    request.headers["X-Forwarded-For"] = f"2001:db8:0:{next(numbers) % 65536:x}::1"
    return send(self, request, **options)


HTTPAdapter.send = send_from_own_address
