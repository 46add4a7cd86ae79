"""A customer's browser that can only sign in and read pages."""

import re

import httpx


def log_in(url: str, *, username: str, password: str) -> httpx.Client:
    browser = httpx.Client(base_url=url, follow_redirects=True, timeout=30, trust_env=False)
    form = browser.get("/login/").raise_for_status().text
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
    assert token is not None
    data = {"csrfmiddlewaretoken": token[1], "login": username, "password": password}
    answer = browser.post("/login/", data=data, headers={"Referer": f"{url}/login/"}).raise_for_status()
    assert "/login" not in str(answer.url), "the login was refused"
    return browser
