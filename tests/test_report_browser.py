"""The report in a real headless Chromium: what a reader sees and does.

Chromium and its driver come from Debian's packages. Where they are missing the tests
are skipped and say so; with CI=true they fail, for a skipped test proves nothing.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from ebda import EBClassifier
from ebda.evaluation import cross_validate
from ebda.priors import DiscretePrior
from ebda.report import write_report

# Chromium takes seconds to start.
pytestmark = pytest.mark.slow

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,1000",
    # A click waits for no scrolling that is still under way.
    "--force-prefers-reduced-motion",
)
MINUS, DASH = "\u2212", "\u2013"
# Each is a name that a careless page would run, break at, or lose.
HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><img src=x onerror='window.hacked = 1'>",
    "\"double\" 'single' & ampersand",
    '=HYPERLINK("http://example.org")',
    "emoji \U0001f9ec and a\u2028line separator",
    "-2+3",
    "long " + "name " * 120 + "end",
    "comma, and\nnew line",
    "<!-- <script>",
    "\u202eright to left",
]
CLASSES = ["<b>ill</b>", "well & 'fine'"]


def lacking() -> str:
    """What is missing for a browser, if anything."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed: pip install 'ebda[dev]'"
    if CHROMIUM is None or DRIVER is None:
        return "no Chromium: apt-get install chromium chromium-driver"
    return ""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if missing := lacking():
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    profile = tmp_path_factory.mktemp("profile")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


def samples(n_classes: int, labels: list[str]) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(n_classes), 60 // n_classes)
    X = rng.normal(size=(len(codes), 240))
    for k in range(n_classes):
        X[np.ix_(codes == k, range(12 * k, 12 * k + 12))] += 1.6
    return X, np.array(labels)[codes]


@pytest.fixture(scope="module")
def case() -> tuple[EBClassifier, Any, Any, Any]:
    pd = pytest.importorskip("pandas")
    X, y = samples(2, CLASSES)
    names = HOSTILE + [f"gene {j}" for j in range(len(HOSTILE), X.shape[1])]
    table = pd.DataFrame(X, columns=names)
    model = EBClassifier().fit(table, y)
    return model, table, y, cross_validate(EBClassifier(), table, y, n_folds=3)


@pytest.fixture(scope="module")
def page(case: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, X, y, evaluation = case
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(
        path,
        model,
        X=X,
        y=y,
        evaluation=evaluation,
        sample_names=[f"<i>sample {i}</i>" for i in range(len(y))],
        data={"source": "<u>hostile.csv</u>", "target": "</title><script>"},
        command="ebda fit 'a & b.csv' --target <x>",
    )
    return path


def console(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


def requested(browser: Any) -> list[str]:
    """Addresses that anything on the page asked for."""
    messages = [
        json.loads(entry["message"])["message"]
        for entry in browser.get_log("performance")
    ]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


@pytest.fixture
def opened(browser: Any, page: Path) -> Iterator[Any]:
    """The page, freshly loaded; it must not complain or ask for anything."""
    console(browser), requested(browser)
    resize(browser, 1200, 1000)
    browser.get(page.as_uri())
    browser.execute_script(
        "localStorage.clear(); delete document.documentElement.dataset.theme"
    )
    yield browser
    assert console(browser) == []
    asked = {url.split("#")[0] for url in requested(browser)}
    outside = {url for url in asked if not url.startswith(("data:", "blob:"))}
    assert outside == {page.as_uri()}
    assert not browser.execute_script("return 'hacked' in window")


def resize(browser: Any, width: int, height: int) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def find(browser: Any, css: str) -> Any:
    return browser.find_element("css selector", css)


def texts(browser: Any, css: str) -> list[str]:
    """Text as the page holds it, shown or not."""
    found: list[str] = browser.execute_script(
        "return Array.from(document.querySelectorAll(arguments[0]),"
        " e => e.textContent)",
        css,
    )
    return found


def until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + 5
    while not (value := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return value


def point(browser: Any, plot: str, feature: int) -> tuple[int, int]:
    """Where a feature lies, from the centre of its plot; it is scrolled into sight."""
    x, y = browser.execute_script(
        "const p = arguments[0] === 'volcano' ? volcano : shrinkage;"
        "p.host.scrollIntoView({behavior: 'instant', block: 'center'});"
        "const i = arguments[1];"
        "return [p.px(p.view.xs[i]) - p.host.clientWidth / 2,"
        "        p.py(p.view.ys[i]) - p.host.clientHeight / 2];",
        plot,
        feature,
    )
    return round(x), round(y)


def move_to(browser: Any, plot: str, feature: int) -> Any:
    from selenium.webdriver import ActionChains

    x, y = point(browser, plot, feature)
    return ActionChains(browser, duration=0).move_to_element_with_offset(
        find(browser, f"#{plot}"), x, y
    )


def type_into(browser: Any, css: str, keys: str) -> None:
    field = find(browser, css)
    field.clear()
    field.send_keys(keys)


def best(case: Any) -> list[str]:
    ranking = case[0].ranking_
    return [str(ranking.names[j]) for j in ranking.order]


def test_it_renders(opened: Any, case: Any) -> None:
    assert texts(opened, "h1") == ["</title><script>: <b>ill</b> against well & 'fine'"]
    assert texts(opened, "tbody th")  # rows of tables
    rows = texts(opened, "#table tbody th")
    assert rows == best(case)[:25]
    for plot in ("volcano", "shrinkage"):
        drawn = opened.execute_script(
            "return Array.from(document.querySelectorAll(arguments[0]),"
            " p => p.getAttribute('d').split('M').length - 1)",
            f"#{plot} .dots",
        )
        # Dots that would lie on one another are drawn once.
        assert 100 < sum(drawn) <= 240
    curves = "#shrinkage .plot .curve, #shrinkage path.curve"
    assert len(texts(opened, curves)) == 4
    for section in ("cautions", "prediction", "samples", "features", "fit"):
        assert find(opened, f"#{section} h2").is_displayed()


def test_hover_names_the_feature_and_its_numbers(opened: Any, case: Any) -> None:
    ranking = case[0].ranking_
    for plot in ("volcano", "shrinkage"):
        move_to(opened, plot, 0).perform()
        tip = until(lambda plot=plot: texts(opened, f"#{plot} .tip:not([hidden])"))[0]
        said = opened.execute_script(
            "return Object.fromEntries(Array.from(document.querySelectorAll("
            "arguments[0]), dt => [dt.textContent, dt.nextSibling.textContent]))",
            f"#{plot} .tip dt",
        )
        # Features may lie on one another: the tip is about the one that it names.
        name = texts(opened, f"#{plot} .tip b")[0]
        j = next(i for i, full in enumerate(ranking.names) if _cut(full) == name)
        assert name in tip
        number = {key: float(v.replace(MINUS, "-")) for key, v in said.items()}
        effect = case[0].posterior_mean_[j]
        assert number["effect"] == pytest.approx(effect, rel=0.01)
        p_value = np.exp(ranking.marginal.log_p[j])
        assert number["p"] == pytest.approx(p_value, rel=0.06)
        assert number["q"] == pytest.approx(ranking.q_value[j], rel=0.06)
    from selenium.webdriver import ActionChains

    ActionChains(opened, duration=0).move_to_element(find(opened, "h2")).perform()
    until(lambda: not texts(opened, ".tip:not([hidden])"))


def _cut(name: str) -> str:
    return name if len(name) <= 120 else name[:119] + "…"


def test_click_selects_and_marks_the_row(opened: Any, case: Any) -> None:
    type_into(opened, "#search", "no such thing")
    move_to(opened, "volcano", 200).click().perform()
    row = until(lambda: texts(opened, '#table tr[aria-current="true"] th'))
    clicked = texts(opened, "#detail h3")
    assert row == clicked
    # The search hid it, and was given up; the table turned to its page.
    assert find(opened, "#search").get_attribute("value") == ""
    place = best(case).index(clicked[0])
    assert texts(opened, "#place")[0].startswith(f"{place // 25 * 25 + 1}{DASH}")
    assert len(texts(opened, "#volcano .ring.selected")) == 1
    assert len(texts(opened, "#shrinkage .ring.selected")) == 1
    assert "Class means" in texts(opened, "#detail")[0]


def test_search_finds_in_plot_and_table(opened: Any, case: Any) -> None:
    type_into(opened, "#search", "GENE 11")
    found = [name for name in best(case) if "gene 11" in name]
    assert texts(opened, "#table tbody th") == found
    status = find(opened, "#matches")
    assert status.text == f"{len(found)} of 240 features match; marked in the plots."
    assert status.get_attribute("aria-live") == "polite"
    marked = find(opened, "#volcano .found").get_attribute("d")
    assert marked.count("M") == len(found)
    find(opened, "#search").send_keys("\ue007")  # Enter
    assert texts(opened, "#detail h3") == found[:1]
    type_into(opened, "#search", "nothing <b>")
    assert find(opened, "#matches").text == "No feature matches “nothing <b>”."
    find(opened, "#search").send_keys("\ue00c")  # Escape
    assert len(texts(opened, "#table tbody tr")) == 25
    assert find(opened, "#matches").text == ""


def test_sort_by_columns_both_ways(opened: Any, case: Any) -> None:
    ranking = case[0].ranking_
    heads = opened.find_elements("css selector", "#table thead button")
    assert [h.text for h in heads][:3] == ["feature", "rank", "difference"]
    by_z = ranking.names[np.argsort(-case[0].z_, kind="stable")]
    z = next(h for h in heads if h.text == "z")
    z.click()
    assert texts(opened, "#table tbody th") == by_z[:25].tolist()
    cell = z.find_element("xpath", "..")
    assert cell.get_attribute("aria-sort") == "descending"
    z.click()
    assert texts(opened, "#table tbody th") == by_z[::-1][:25].tolist()
    assert cell.get_attribute("aria-sort") == "ascending"
    assert len(texts(opened, "#table th[aria-sort]")) == 1
    p_value = next(h for h in heads if h.text == "p")
    p_value.click()
    assert texts(opened, "#table tbody th")[:8] == best(case)[:8]
    p_value.click()
    last = texts(opened, "#table tbody th")[0]
    log_p = ranking.marginal.log_p
    assert log_p[list(ranking.names).index(last)] == log_p.max()


def test_served_by_a_web_server_it_asks_for_nothing_more(
    browser: Any, page: Path
) -> None:
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: Any) -> None:
            asked.append(self.path)

    handler = partial(Handler, directory=str(page.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        console(browser)
        browser.get(f"http://127.0.0.1:{server.server_port}/{page.name}")
        until(lambda: texts(browser, "#table tbody tr"))
        time.sleep(0.3)  # a request for an icon would come late
        browser.get("about:blank")
        server.shutdown()
        thread.join()
    assert asked == [f"/{page.name}"]
    assert console(browser) == []


def test_pages_turn(opened: Any, case: Any) -> None:
    order = best(case)
    click = [find(opened, f"#{name}") for name in ("first", "previous", "next", "last")]
    first, previous, following, last = click
    assert not first.is_enabled()
    assert not previous.is_enabled()
    following.click()
    assert texts(opened, "#table tbody th") == order[25:50]
    last.click()
    assert texts(opened, "#table tbody th") == order[225:]
    assert not following.is_enabled()
    previous.click()
    first.click()
    assert find(opened, "#place").text == f"1{DASH}25 of 240"
    opened.execute_script(
        "const s = document.getElementById('size'); s.value = '100';"
        "s.dispatchEvent(new Event('change'))"
    )
    assert texts(opened, "#table tbody th") == order[:100]


def test_download_holds_the_numbers_of_the_model(
    opened: Any, case: Any, tmp_path: Path
) -> None:
    opened.execute_cdp_cmd(
        "Browser.setDownloadBehavior",
        {"behavior": "allow", "downloadPath": str(tmp_path)},
    )
    find(opened, "#download").click()
    path = tmp_path / "features.csv"
    until(lambda: path.exists() and path.stat().st_size > 0)
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    model = case[0]
    ranking = model.ranking_
    column = np.array([int(row["column"]) for row in rows])
    np.testing.assert_array_equal(column, ranking.order)
    # A spreadsheet must not take a name for a formula.
    formula = ("=", "+", "-", "@")
    expected = [f"'{name}" if name.startswith(formula) else name for name in best(case)]
    assert [row["feature"] for row in rows] == expected
    means = model.moments_.means
    for key, values, digits in (
        ("t", ranking.marginal.t, 1e-6),
        ("p_value", np.exp(ranking.marginal.log_p), 6e-5),
        ("q_value", ranking.q_value, 6e-5),
        ("q_beyond_factors", ranking.conditional.q_value, 6e-5),
        ("z", model.z_, 1e-6),
        ("posterior_mean", model.posterior_mean_, 1e-6),
        ("prob_zero", model.prob_zero_, 1e-6),
        ("coef", model.coef_[0], 1e-6),
        ("difference", means[1] - means[0], 1e-6),
        (f"mean of {CLASSES[0]}", means[0], 1e-6),
    ):
        got = np.array([float(row[key]) for row in rows])
        np.testing.assert_allclose(got, values[column], rtol=digits, atol=1e-99)
    assert [int(row["rank"]) for row in rows] == list(range(1, 241))


def test_keyboard_alone_is_enough(opened: Any, case: Any) -> None:
    from selenium.webdriver import ActionChains

    def press(*keys: str) -> None:
        ActionChains(opened, duration=0).send_keys(*keys).perform()

    tab, enter, right, left = "\ue004", "\ue007", "\ue014", "\ue012"

    def active(what: str) -> Any:
        return opened.execute_script(f"return document.activeElement.{what}")

    press(tab)
    assert active("className") == "skip"
    assert opened.execute_script(
        "return getComputedStyle(document.activeElement).outlineStyle"
    ) not in ("none", "")
    seen = []
    for _ in range(40):
        press(tab)
        seen.append(active("id"))
        if seen[-1] == "volcano":
            break
    assert [s for s in seen if s in ("theme", "search", "across", "volcano")] == [
        "theme",
        "search",
        "across",
        "volcano",
    ]
    press(right, right, left)
    assert texts(opened, "#live")[0].startswith(best(case)[0])
    assert texts(opened, "#volcano .tip b")[0] == _cut(best(case)[0])
    press(right, enter)
    assert texts(opened, "#detail h3") == [best(case)[1]]
    find(opened, "#table thead button").send_keys(enter)
    assert find(opened, '#table th[aria-sort="ascending"]').text == "feature"
    button = find(opened, "#table tbody button")
    name = button.get_attribute("textContent")
    button.send_keys(enter)
    assert texts(opened, "#detail h3") == [name]
    assert active("textContent") == name  # the focus is not lost
    assert active("getAttribute('aria-pressed')") == "true"


def test_landmarks_and_text_alternatives(opened: Any) -> None:
    count = "return document.querySelectorAll(arguments[0]).length"
    for css in ("header", "main", "nav[aria-label]", "h1", "html[lang]"):
        assert opened.execute_script(count, css) == 1, css
    assert opened.execute_script(count, "section:not([aria-labelledby])") == 0
    assert opened.execute_script(count, "main section > h2") == 6
    assert opened.execute_script(count, "svg:not([aria-label]):not([aria-hidden])") == 0
    assert opened.execute_script(count, "table:not(:has(caption))") == 0
    assert opened.execute_script(count, "th:not([scope])") == 0
    assert opened.execute_script(count, ".plot:not([aria-label])") == 0
    unnamed = opened.execute_script(
        "return Array.from(document.querySelectorAll('input, select'))"
        ".filter(e => !e.labels.length).length"
    )
    assert unnamed == 0


def background(browser: Any) -> str:
    found: str = browser.execute_script(
        "return getComputedStyle(document.body).backgroundColor"
    )
    return found


def wish_for(browser: Any, scheme: str) -> None:
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def test_light_and_dark(opened: Any) -> None:
    wish_for(opened, "light")
    light = background(opened)
    wish_for(opened, "dark")
    until(lambda: background(opened) != light)
    dark = background(opened)
    toggle = find(opened, "#theme")
    # The page hears of the system's wish a moment after its style has changed.
    until(lambda: toggle.get_attribute("aria-pressed") == "true")
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "false"
    assert background(opened) == light
    wish_for(opened, "light")
    toggle.click()
    assert background(opened) == dark
    opened.refresh()  # the choice is kept
    assert background(opened) == dark
    find(opened, "#theme").click()
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    until(lambda: not find(opened, "nav").is_displayed())
    assert background(opened) == "rgb(255, 255, 255)"
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("width", [320, 360, 768, 1200])
def test_no_width_scrolls_sideways(opened: Any, width: int) -> None:
    resize(opened, width, 740)
    until(lambda: opened.execute_script("return innerWidth") == width)
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    shown = [
        figure.is_displayed()
        for figure in opened.find_elements("css selector", ".lanes svg")
    ]
    assert sum(shown) == 1


def test_hostile_names_are_text(opened: Any) -> None:
    type_into(opened, "#search", "<script>")
    assert set(texts(opened, "#table tbody th")) == {HOSTILE[0], HOSTILE[8]}
    type_into(opened, "#search", "long name")
    assert texts(opened, "#table tbody th") == [HOSTILE[6]]
    assert opened.title.startswith("</title><script>: <b>ill</b>")
    assert "<i>sample" in "".join(texts(opened, ".doubtful th, .lanes title"))
    assert "<u>hostile.csv</u>" in texts(opened, ".source")
    assert len(texts(opened, "script")) == 2
    assert texts(opened, "img, u, i, main b b") == []


def test_the_policy_stops_what_is_not_ours(opened: Any) -> None:
    opened.execute_script(
        "const s = document.createElement('script'); s.textContent = 'hacked = 1';"
        "document.body.append(s);"
    )
    messages = until(lambda: console(opened))
    assert any("Content Security Policy" in message for message in messages)


def test_the_axes_can_be_chosen(opened: Any, case: Any) -> None:
    from selenium.webdriver.support.select import Select

    Select(find(opened, "#up")).select_by_value("zero")
    Select(find(opened, "#across")).select_by_value("effect")
    assert "probability of zero" in texts(opened, "#volcano .axis-title")
    heights = opened.execute_script(
        "const { xs, ys } = volcano.view;"
        "return [0, xs.length - 1].map(i => volcano.py(ys[i]))"
    )
    zero = case[0].prob_zero_[case[0].ranking_.order[[0, -1]]]
    assert zero[0] < zero[1]
    assert heights[0] < heights[1]  # improbable zeros are up


def test_many_classes_have_a_chooser(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.support.select import Select

    X, y = samples(3, ["a", "b", "<c>"])
    model = EBClassifier(covariance="diagonal").fit(X, y)
    path = tmp_path / "three.html"
    write_report(path, model, X=X, y=y)
    resize(browser, 1200, 1000)
    browser.get(path.as_uri())
    ranking = model.ranking_
    chooser = Select(find(browser, "#contrast"))
    assert [o.text for o in chooser.options] == [
        f"{label} against all" for label in model.classes_
    ]
    for k, label in enumerate(model.classes_):
        chooser.select_by_visible_text(f"{label} against all")
        order = ranking.marginal.order_in(k)
        shown = texts(browser, "#table tbody th")
        assert shown == [f"x{j}" for j in order[:25]]
        t = texts(browser, "#table tbody td:nth-child(4)")
        assert float(t[0].replace(MINUS, "-")) == pytest.approx(
            ranking.marginal.t[k, order[0]], abs=0.006
        )
        title = texts(browser, "#volcano .axis-title")[0]
        assert title == f"mean of {label} minus mean of all"
    assert console(browser) == []


@pytest.mark.parametrize("shape", [(24, 1), (24, 40)])
def test_nothing_to_show_is_shown_as_such(
    browser: Any, tmp_path: Path, shape: tuple[int, int]
) -> None:
    X = np.random.default_rng(0).normal(size=shape)
    model = EBClassifier(prior=DiscretePrior([0], [1]))
    model.fit(X, np.repeat([0, 1], 12))
    assert not model.selected_.any()
    path = tmp_path / "nothing.html"
    write_report(path, model)
    resize(browser, 1200, 1000)
    browser.get(path.as_uri())
    assert "No difference found" in texts(browser, "#cautions h3")
    assert len(texts(browser, "#table tbody tr")) == min(shape[1], 25)
    move_to(browser, "volcano", 0).click().perform()
    assert texts(browser, "#detail h3")
    assert console(browser) == []


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> tuple[EBClassifier, Path]:
    """A report of forty classes with long names."""
    rng = np.random.default_rng(5)
    codes = np.repeat(np.arange(40), 4)
    X = rng.normal(size=(len(codes), 90))
    X[np.arange(len(codes)), codes] += 3.0
    labels = np.array(
        [f"tissue {k:02d}: stratified squamous tissue" for k in range(40)]
    )
    model = EBClassifier(covariance="diagonal", shrinkage="mean", calibrate=False)
    model.fit(X, labels[codes])
    evaluation = cross_validate(model, X, labels[codes], n_folds=2)
    path = tmp_path_factory.mktemp("forty") / "forty.html"
    write_report(path, model, X=X, y=labels[codes], evaluation=evaluation)
    return model, path


@pytest.mark.parametrize("width", [390, 1280])
def test_forty_classes_fit(browser: Any, forty: Any, width: int) -> None:
    from selenium.webdriver.support.select import Select

    model, path = forty
    resize(browser, width, 900)
    browser.get(path.as_uri())
    assert (
        browser.execute_script("return document.documentElement.scrollWidth") <= width
    )
    heat = browser.execute_script(
        "const h = document.querySelector('.heat');"
        "return [h.offsetWidth, h.parentElement.clientWidth,"
        " Array.from(h.querySelectorAll('td span'), e => e.offsetWidth)]"
    )
    assert min(heat[2]) >= 17
    assert width == 390 or heat[0] <= heat[1]  # on a phone it scrolls in its box
    q = model.ranking_.marginal.q_value
    for k in (0, 7):
        Select(find(browser, "#contrast")).select_by_index(k)
        caption = texts(browser, "#volcano-caption")[0]
        assert caption.startswith(f"{(q[k] <= 0.05).sum()} of 90 features differ")
        up = find(browser, "#volcano .dots.up").get_attribute("class")
        assert up.split() == ["dots", "up", f"c{k}"]
    assert console(browser) == []


def test_on_paper_nothing_is_cut_or_shrunken(browser: Any, forty: Any) -> None:
    resize(browser, 672, 1000)  # A4 less its margins
    browser.get(forty[1].as_uri())
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    sizes = browser.execute_script(
        "return Array.from(document.querySelectorAll('svg:not(.bar)'), s => {"
        " const b = s.getBoundingClientRect(), v = s.viewBox.baseVal;"
        " return [b.width, b.height, v.width, b.right]; })"
    )
    shown = [size for size in sizes if size[0]]
    assert len(shown) > 6
    for wide, high, drawn, right in shown:
        assert high < 1000  # an svg that is higher than a page leaves blanks
        assert right <= 672
        assert drawn == 0 or wide / drawn > 0.9  # its text is as large as it was drawn
    for table in ("heat", "doubtful", "features"):
        right = browser.execute_script(
            "return document.querySelector(arguments[0]).getBoundingClientRect().right",
            f"table.{table}",
        )
        assert right <= 672, table
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
