"""Engines that are made while another thread records a graph."""

import threading

import pytest

import kernwright as kw
from kernwright import llm
from kernwright.errors import CaptureError


@pytest.fixture
def model():
    return llm.load(random={
        "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
        "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "max_position_embeddings": 64, "dtype": "float32",
    })  # fmt: skip


def test_another_threads_capture_is_waited_for(model):
    recording, over = threading.Event(), threading.Event()

    def record():
        graph = kw.Graph()
        with kw.Stream(), graph.capture():
            recording.set()
            over.wait(60)

    thread = threading.Thread(target=record)
    thread.start()
    assert recording.wait(60)
    with pytest.raises(CaptureError):  # what a plain wait says
        kw.current_device().synchronize()
    threading.Timer(0.2, over.set).start()
    made = model.generate([1, 2], max_tokens=2, ignore_eos=True)
    assert over.is_set() and len(made.tokens) == 2
    thread.join()


def test_a_capture_of_the_thread_itself_raises(model):
    graph = kw.Graph()
    with kw.Stream(), pytest.raises(CaptureError), graph.capture():
        model.generate([1, 2], max_tokens=2)
    assert model.generate([1, 2], max_tokens=2, ignore_eos=True).tokens
