"""Headless Chromium from the system's packages, with a profile that can be used again."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium.common.exceptions import StaleElementReferenceException, TimeoutException, WebDriverException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

WAIT_SECONDS = 60
POLL_SECONDS = 0.05
_NOT_IN_THE_DOCUMENT = "does not belong to the document"

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_DRIVERS = ("chromedriver",)
_ARGUMENTS = (
    "--headless",
    # It opens only pages of this machine, and its sandbox does not start for root or in a container.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    # No requests to other hosts.
    "--disable-background-networking",
    "--disable-component-update",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
)
_MOST_STOPS = 100
_IS_SHOWN = "return document.querySelector('.appearing') === null"
_FOCUSED = """
const at = document.activeElement;
return (at.getAttribute("aria-label") ?? at.labels?.[0]?.textContent ?? at.textContent).trim();
"""
_FETCH = """
const [url, init, done] = arguments;
fetch(url, {credentials: "include", ...init}).then(
    async reply => done({type: reply.type, status: reply.status, text: await reply.text()}),
    error => done({type: "error", status: 0, text: String(error)}),
);
"""


@contextlib.contextmanager
def opened(profile: Path) -> Iterator[Browser]:
    """A context with a browser. Another one with the same profile later has its persistent cookies."""
    home = profile.with_suffix(".home")
    home.mkdir(parents=True, exist_ok=True)
    options = ChromeOptions()
    options.binary_location = _installed(_BROWSERS)
    for argument in (*_ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    # With a path, Selenium does not search or download one.
    service = ChromeService(_installed(_DRIVERS), env={"PATH": os.environ["PATH"], "HOME": str(home)})
    driver = Chrome(options, service)
    try:
        driver.set_page_load_timeout(WAIT_SECONDS)
        driver.set_script_timeout(WAIT_SECONDS)
        yield Browser(driver)
    finally:
        driver.quit()


def _installed(names: tuple[str, ...]) -> str:
    for name in names:
        if path := shutil.which(name):
            return path
    raise AssertionError(
        f"The browser tests need {' or '.join(names)} on PATH, and found none. "
        "On Debian: sudo apt-get install chromium chromium-driver"
    )


@dataclass(frozen=True)
class Reply:
    """The part of a reply that a page's script gets. `status` is 0 if the browser hides the reply from the page."""

    type: str
    status: int
    text: str


@dataclass(frozen=True)
class Browser:
    driver: Chrome

    def open(self, url: str) -> None:
        self.driver.get(url)

    @property
    def url(self) -> str:
        return self.driver.current_url

    def run(self, script: str) -> Any:
        """Run `script` in the page, or in the frame that was entered, and return its result."""
        return self.driver.execute_script(script)

    def run_async(self, script: str, *arguments: Any) -> Any:
        """Run `script`, whose last argument is a function, and return what it calls this function with."""
        return self.driver.execute_async_script(script, *arguments)

    def fetch(self, url: str, **init: Any) -> Reply:
        """Call the page's `fetch(url, {credentials: "include", ...init})`."""
        return Reply(**self.driver.execute_async_script(_FETCH, url, init))

    @contextlib.contextmanager
    def before_each_page(self, script: str) -> Iterator[None]:
        """A context in which `script` runs in each page that opens, before the scripts of the page."""
        added = self._command("Page.addScriptToEvaluateOnNewDocument", source=script)
        yield
        self._command("Page.removeScriptToEvaluateOnNewDocument", **added)

    def look(self, *, width: int, dark: bool = False, **features: str) -> None:
        """Set the width of the page in pixels, and what the system prefers, such as `forced_colors="active"`."""
        self._command("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self._command("Emulation.setScrollbarsHidden", hidden=True)
        wanted = {"prefers-color-scheme": "dark" if dark else "light"}
        wanted |= {name.replace("_", "-"): value for name, value in features.items()}
        self._command(
            "Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in wanted.items()]
        )

    def picture(self) -> bytes:
        """What the window shows, as PNG."""
        return self.driver.get_screenshot_as_png()

    def cookies(self) -> dict[str, dict[str, Any]]:
        """The cookies that the browser would send to the page's server, by name."""
        return {cookie["name"]: cookie for cookie in self.driver.get_cookies()}

    def forget_cookies(self) -> None:
        """Delete the cookies of all sites."""
        self._command("Network.clearBrowserCookies")

    def errors(self) -> list[str]:
        """New errors in the browser's log: refused by a policy, or raised by a script."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")  # type: ignore[no-untyped-call]
            if entry["source"] in ("security", "javascript")
        ]

    def text(self) -> str:
        return self.driver.find_element(By.TAG_NAME, "body").text

    def follow(self, link: str) -> None:
        """Click the first link that has `link` in its text, and wait for the next page."""
        before = self.url
        self._link(link).click()
        self._wait(lambda: self.url != before, f"the link {link} led nowhere")

    def follow_to_new_window(self, link: str) -> None:
        """The same with a link that opens a new window. The next commands go to that window."""
        known = set(self.driver.window_handles)
        self._link(link).click()
        self._wait(lambda: set(self.driver.window_handles) - known, f"{link} opened no window")
        (window,) = set(self.driver.window_handles) - known
        self.driver.switch_to.window(window)
        self._wait(lambda: self.url.startswith("http"), f"the link {link} led nowhere")

    def open_when_there(self, url: str, row: str, link: str) -> None:
        """Reload the list at `url` until a row with the cell `row` has a link with `link` in its text. Follow it."""
        path = f"//tr[td[.='{row}']]//a[contains(., '{link}')]"

        def found() -> list[WebElement]:
            self.open(url)
            return self.driver.find_elements(By.XPATH, path)

        self._wait(found, f"{url} shows no {link} to {row}")
        self.driver.find_element(By.XPATH, path).click()
        self._wait(lambda: self.url != url, f"{link} led nowhere")

    def enter_frame(self) -> None:
        """Enter the page's only frame."""
        self.driver.switch_to.frame(self.driver.find_element(By.TAG_NAME, "iframe"))

    def submit(self, action: str, fields: dict[str, str]) -> None:
        """Submit a form from the page, as a navigation, and wait for the result."""
        before = self.url
        self.driver.execute_script(
            """
            const form = Object.assign(document.createElement("form"), {method: "post", action: arguments[0]});
            for (const [name, value] of Object.entries(arguments[1]))
                form.append(Object.assign(document.createElement("input"), {name, value}));
            document.body.append(form);
            form.submit();
            """,
            action,
            fields,
        )
        self._wait(lambda: self.url != before, f"the form did not reach {action}")

    def heading(self) -> str:
        """The heading of the page, or an empty text if it has none."""
        shown = [element.text for element in self.driver.find_elements(By.TAG_NAME, "h1")]
        return next(filter(None, shown), "")

    def wait_for_heading(self, heading: str) -> None:
        """Wait until the page has this heading, and the console shows what is below it."""
        self._wait(
            lambda: self.heading() == heading and self.run(_IS_SHOWN),
            lambda: f"the page shows {self.heading()!r}, not {heading!r}: {self.text()}",
        )

    def wait_for_text(self, text: str) -> None:
        self._wait(lambda: text in self.text(), lambda: f"no {text!r} in {self.text()!r}")

    def wait_until(self, script: str) -> None:
        """Wait until `script` returns a true value."""
        self._wait(lambda: self.run(script), lambda: f"not true: {script} on {self.text()}")

    def type(self, label: str, *text: str) -> None:
        """Type into the visible field with this label. `text` can have keys at its end."""
        field = self._shown(f"//*[@id = //label[normalize-space() = '{label}']/@for]")
        field.clear()
        field.send_keys(*text)

    def choose(self, label: str, option: str) -> None:
        path = f"//select[@id = //label[normalize-space() = '{label}']/@for]/option[. = '{option}']"
        self._shown(path).click()

    def tick(self, label: str) -> None:
        self._shown(f"//label[normalize-space() = '{label}']").click()

    def press(self, button: str) -> None:
        """Press the visible button or link with this text."""
        path = f"//*[self::button or self::a][normalize-space() = '{button}']"

        def pressed() -> bool:
            self._shown(path).click()
            return True

        self._wait(pressed, f"{button!r} cannot be pressed")

    def keys(self, *pressed: str) -> None:
        """Press keys. They go to the element with the focus."""
        self.driver.switch_to.active_element.send_keys(*pressed)

    def tab(self, times: int = 1) -> None:
        """Press the Tab key."""
        key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
        for _ in range(times):
            self._command("Input.dispatchKeyEvent", type="rawKeyDown", **key)
            self._command("Input.dispatchKeyEvent", type="keyUp", **key)

    def tab_to(self, name: str) -> None:
        """Press the Tab key until the element with this label or text has the focus."""
        for _ in range(_MOST_STOPS):
            self.tab()
            if self.run(_FOCUSED) == name:
                return
        raise AssertionError(f"the Tab key does not lead to {name!r}: {self.text()}")

    def _command(self, name: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the Chrome DevTools Protocol, and return its result."""
        result: dict[str, Any] = self.driver.execute_cdp_cmd(name, parameters)
        return result

    def _shown(self, path: str) -> WebElement:
        def found() -> list[WebElement]:
            return [element for element in self.driver.find_elements(By.XPATH, path) if element.is_displayed()]

        self._wait(found, lambda: f"nothing at {path} is shown: {self.text()}")
        (shown,) = found()
        return shown

    def _link(self, text: str) -> WebElement:
        def found() -> list[WebElement]:
            return self.driver.find_elements(By.PARTIAL_LINK_TEXT, text)

        self._wait(found, lambda: f"no link has {text!r}: {self.text()}")
        first, *_ = found()
        return first

    def _wait(self, condition: Callable[[], object], message: str | Callable[[], str]) -> None:
        waiting = WebDriverWait(self.driver, WAIT_SECONDS, POLL_SECONDS, (StaleElementReferenceException,))

        def met(_: object) -> object:
            try:
                return condition()
            except WebDriverException as error:
                # The page replaced the element in the meantime. Chromium does not always call this stale.
                if _NOT_IN_THE_DOCUMENT in (error.msg or ""):
                    return False
                raise

        try:
            waiting.until(met)
        except TimeoutException:
            raise AssertionError(message() if callable(message) else message) from None
