"""Sign in with the provider of the local cloud, by the requests of a browser."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from typing import Any

from local.provider.app import ID
from local.provider.people import Person


class Browser:
    """Cookies, and a person who signs in. It uses no proxy."""

    def __init__(self, api_url: str) -> None:
        self._api_url = api_url
        cookies = urllib.request.HTTPCookieProcessor(CookieJar())
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)

    def sign_in(self, person: Person) -> bool:
        """Sign in as a person of Example Company. False if the local cloud has no such provider."""
        try:
            started = self._json("/api/auth/sign-in/social", provider=ID, callbackURL="/sign-in")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False
        # As a link on the provider's page does.
        self._opener.open(f"{started['url']}&person={person.subject}").close()
        return True

    def roles(self) -> dict[str, str]:
        """The roles of the person who is signed in, by the slug of the team."""
        teams = self._json("/api/auth/console")["teams"]
        return {team["slug"]: team["membership"]["role"] for team in teams}

    def _json(self, path: str, **body: str) -> Any:
        headers = {"origin": self._api_url, "content-type": "application/json"}
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(self._api_url + path, data, headers)  # noqa: S310 - http
        with self._opener.open(request) as reply:
            return json.load(reply)
