"""The page for chats in a browser: it asks for a key, streams, stops, tells errors, and fits."""

import browser
import pytest
from serving import TINY, WritingEngine, serving, wait_for

from kernwright import llm
from kernwright.serve.http.keys import Keys

pytestmark = pytest.mark.skipif(browser.find() is None, reason=browser.WHY_NONE)
KEY = "a-key-of-tests"
TEXT = "<think>Hm, so.</think>One <b>two</b>\n  three, and a_word_" + "of_one_line_" * 20


@pytest.fixture(scope="module")
def engine():
    return WritingEngine(llm.load(TINY), TEXT)


@pytest.fixture(scope="module")
def page(engine, tmp_path_factory):
    made = browser.Browser(browser.find(), tmp_path_factory.mktemp("browser") / "profile")
    try:
        with serving(engine, keys=Keys({"tests": KEY})) as client:
            made.url = f"http://127.0.0.1:{client.port}/"
            yield made
    finally:
        made.close()


def begin(page, width=1200, key=KEY):
    """The page anew, with a key."""
    page.resize(width)
    page.go(page.url)
    page.wait_for("document.querySelector('.error') !== null")
    if key:
        put(page, "key", key)
        page.wait_for("document.getElementById('model').value === 'tiny'")


def put(page, name, value):
    page.ask(
        f"{{ const each = document.getElementById('{name}'); each.value = {value!r};"
        " each.dispatchEvent(new Event('change')) }"
    )


def send(page, text):
    put(page, "text", text)
    page.ask("document.getElementById('ask').requestSubmit()")


def shown(page, kind):
    """The texts of messages of a kind, in their order."""
    return page.ask(f"[...document.querySelectorAll('.{kind}')].map((each) => each.textContent)")


def is_idle(page):
    return page.ask("document.getElementById('stop').hidden")


def test_it_asks_for_a_key(page):
    begin(page, key=None)
    assert "an API key is needed" in shown(page, "error")[0]
    assert page.ask("document.activeElement.id") == "key"
    put(page, "key", "a-wrong-key")
    wait_for(lambda: any("the API key is wrong" in each for each in shown(page, "error")))
    put(page, "key", KEY)
    page.wait_for("document.getElementById('model').value === 'tiny'")
    assert shown(page, "error") == []
    assert all(url.startswith((page.url, "data:")) for url in page.requests)  # nothing from afar


@pytest.mark.parametrize("width", [1200, 390])
def test_a_chat_streams(page, engine, width):
    begin(page, width)
    engine.seconds = 0.002
    before = len(engine.options)
    for name, value in (("temperature", "0.5"), ("top_p", "0.9"), ("seed", "7")):
        put(page, name, value)
    page.ask(
        "grown = 0; new MutationObserver(() => { grown += 1 }).observe("
        "document.getElementById('talk'), {childList: true, subtree: true})"
    )
    send(page, "Hi")
    assert not is_idle(page) and page.ask("document.getElementById('send').hidden")
    wait_for(lambda: is_idle(page))
    assert page.ask("grown") > 10
    reasoning, text = TEXT.removeprefix("<think>").split("</think>")
    assert shown(page, "user") == ["Hi"] and shown(page, "reasoning") == [reasoning]
    assert shown(page, "assistant") == [text]  # with its <b> as characters
    told = shown(page, "told")[0]
    count = len(engine.model.tokenizer.encode(TEXT, add_special_tokens=False)) + 1
    assert told.startswith(f"{count} tokens, the first after ") and told.endswith(" tokens/s")
    assert 0 < float(told.split("then ")[1].split()[0]) < 1000
    options = engine.options[before]
    assert (options["temperature"], options["top_p"], options["seed"]) == (0.5, 0.9, 7)
    assert page.too_wide() is None
    box = "document.getElementById('send').getBoundingClientRect()"
    assert page.ask(f"{box}.bottom <= innerHeight && {box}.right <= innerWidth")
    talk = page.ask("document.getElementById('talk').getBoundingClientRect().height")
    assert talk > 500  # of 900 pixels


def test_stop_ends_the_request_and_keeps_the_text(page, engine):
    begin(page)
    engine.seconds = 0.05
    send(page, "Hi")
    wait_for(lambda: shown(page, "assistant")[0])
    assert engine.running == 1
    page.ask("document.getElementById('stop').click()")
    wait_for(lambda: is_idle(page) and engine.running == 0)
    assert shown(page, "told")[0].endswith(", stopped") and shown(page, "error") == []
    assert TEXT.split("</think>")[1].startswith(shown(page, "assistant")[0])


def test_an_error_is_told_and_the_message_can_be_sent_again(page, engine):
    begin(page)
    engine.seconds = 0
    put(page, "temperature", "3")
    send(page, "Hi")
    wait_for(lambda: shown(page, "error"))
    assert shown(page, "error") == ["temperature is from 0 to 2, got 3.0"]
    wait_for(lambda: is_idle(page))
    assert shown(page, "assistant") == []
    assert page.ask("document.getElementById('text').value") == "Hi"
    put(page, "temperature", "1")
    send(page, "Hi")
    wait_for(lambda: shown(page, "assistant") and is_idle(page))
    page.ask("document.getElementById('clear').click()")
    assert page.ask("document.getElementById('talk').children.length") == 0
    assert all("401" in each or "400" in each for each in page.problems)
