"""llm.quantize: the files of a model, with weights of few bits."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import kernwright as kw
from kernwright._core import Array
from kernwright._files.gguf import Gguf
from kernwright._files.opening import path_of
from kernwright._files.safetensors import save_safetensors
from kernwright._support.files import store_error
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._fields import read_json
from kernwright.llm._fill import NUMBERS, Few, Filling
from kernwright.llm._gguf.config import DTYPE_KEY, config_of
from kernwright.llm._gguf.metadata import end_tokens
from kernwright.llm._gguf.names import gguf_names
from kernwright.llm._gguf.vocabulary import vocabulary_of
from kernwright.llm._gguf.writing import FileArrays
from kernwright.llm._layouts import FILE_TYPES, LAYOUTS
from kernwright.llm._load import (
    check_dtype,
    existing_path,
    gguf_tensors,
    with_generation_config,
)
from kernwright.llm._quantised.methods import quantization_config
from kernwright.llm._registry import class_of
from kernwright.llm._tensors import SafeTensorsFiles, opened_folder
from kernwright.llm._text.files import has_tokenizer

__all__ = ["quantize"]

Progress = Callable[[int, int, str], object]

_SHARD = 4 << 30  # bytes of a file, and of what the device holds of one
# Files of weights, and those that are written anew; everything else in a folder is copied.
_NOT_COPIED = (".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth",
               ".ckpt", ".h5", ".msgpack", ".onnx", ".gguf")  # fmt: skip
_FOLDERS = ("additional_chat_templates",)


def quantize(
    source: str | os.PathLike[str], target: str | os.PathLike[str], format: str, *,
    dtype: str | None = None, device: Any = None, progress: Progress | None = None,
) -> None:  # fmt: skip
    """Writes a model's files with quantised weights, as llm.load(source, quantize=format) has them.

    - From a folder of Hugging Face's layout to a folder: "fp8" (compressed-tensors, a scale for
      each row), "int8" or "nf4" (bitsandbytes). All files without weights are copied.
    - From a folder to a .gguf file: "q4_k", "q5_k", "q6_k", "q8_0" and the other GGUF formats, with
      llama.cpp's names. Tokenizer and chat templates become metadata. Logits may differ by
      rounding, because some families have queries and keys in another order there.
    - From a .gguf file to a .gguf file: metadata and quantised weights stay.

    Weights of linear layers are quantised. The logits' product, experts and routers are not.
    Numbers are rounded to `dtype` first, by default that of the config. The device holds all of a
    .gguf file at once.
    ``progress(done, total, name)`` is called for each tensor.

    `target` appears when it is complete. Raises InvalidArgument if it exists, ModelError for files
    or settings without a place in the format, for quantised models and for rows without whole
    blocks, ArgumentError, StoreError. One thread at a time.

    >>> import json, os
    >>> from kernwright import llm
    >>> fields = {"architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    ...           "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    >>> block = "model.layers.0."
    >>> shapes = {"model.embed_tokens": (64, 32), "model.norm": (32,), "lm_head": (64, 32)}
    >>> shapes |= {f"{block}{each}_layernorm": (32,) for each in ("input", "post_attention")}
    >>> shapes |= {f"{block}self_attn.{each}_proj": (32, 32) for each in "qkvo"}
    >>> shapes |= {f"{block}mlp.{each}_proj": (64, 32) for each in ("gate", "up")}
    >>> shapes |= {f"{block}mlp.down_proj": (32, 64)}
    >>> arrays = {f"{name}.weight": kw.ones(shape) for name, shape in shapes.items()}
    >>> os.mkdir("model")
    >>> kw.save_safetensors("model/model.safetensors", arrays)
    >>> with open("model/config.json", "w") as file:
    ...     json.dump(fields, file)
    >>> llm.quantize("model", "model-fp8", "fp8")
    >>> llm.load("model-fp8").config.fields["quantization_config"]["format"]
    'float-quantized'
    """
    check_dtype(dtype)
    name, made = existing_path(source), _new_path(target)
    _check_format(name, made, format)
    if not os.path.isdir(name):
        _write_gguf(name, made, format, dtype, device, progress)
    elif format in FILE_TYPES:
        _convert_folder(name, made, format, dtype, device, progress)
    else:
        _write_folder(name, made, format, dtype, device, progress)


def _new_path(target: Any) -> str:
    """The path of what is to be made. Raises ArgumentError, InvalidArgument."""
    name = path_of(target)
    name = name.rstrip(os.sep) or name
    if os.path.lexists(name):
        raise InvalidArgument(f"{name} exists already: quantize() replaces nothing")
    folder = os.path.dirname(name) or "."
    if not os.path.isdir(folder):
        raise InvalidArgument(f"{name} cannot be written: there is no folder {folder}")
    return name


def _check_format(source: str, target: str, format: Any) -> None:
    """Raises ArgumentError for a format, ModelError for files that do not take it."""
    if not isinstance(format, str) or format not in (*LAYOUTS, *FILE_TYPES):
        raise ArgumentError(
            f"format is one of {', '.join(LAYOUTS)} for a folder and one of "
            f"{', '.join(FILE_TYPES)} for a .gguf file, got {format!r:.60}"
        )
    is_folder, ends = os.path.isdir(source), target.endswith(".gguf")
    if format in FILE_TYPES and not ends:
        raise ModelError(f"{target} must end in .gguf: {format} is a format of such files")
    if format in LAYOUTS and not is_folder:
        raise ModelError(
            f"{source} is a .gguf file, which is written as {', '.join(FILE_TYPES)}, not {format}"
        )
    if format in LAYOUTS and ends:
        raise ModelError(
            f"{target} would be a folder, as {format} is: a .gguf file has {', '.join(FILE_TYPES)}"
        )


# ---- folders of Hugging Face's layout


def _write_folder(
    source: str, target: str, format: str, dtype: str | None, device: Any,
    progress: Progress | None,
) -> None:  # fmt: skip
    config_path = os.path.join(source, "config.json")
    config = _config_of_numbers(config_path)
    kind = class_of(config.architecture, config.source)
    number = dtype or config.dtype
    with opened_folder(source, device) as files, _new_folder(target) as folder:
        few = Filling(kind(config), files, kind.names, number, device, None).few()
        _check_rows(few, files, LAYOUTS[format].block, format)
        _write_weights(folder, files, few, format, number, progress)
        kept = _kept(files, few)
        _copy_others(source, folder)
        fields = dict(read_json(config_path).values)
        fields["quantization_config"] = LAYOUTS[format].config(kept, number)
        if dtype is not None:
            for each in (fields, fields.get("text_config")):
                if isinstance(each, dict):
                    each.pop("torch_dtype", None)
                    each["dtype"] = dtype
        (folder / "config.json").write_text(
            json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def _config_of_numbers(path: str) -> Config:
    """The config of a folder. Raises ModelError where its weights have few bits already."""
    config = Config.from_file(path)
    method = quantization_config(config.fields, os.path.dirname(path))
    if method is not None:
        known = method.get("quant_method") if isinstance(method, Mapping) else method
        raise ModelError(f"{path}: the weights are quantised already, by {known!r:.60}")
    return config


def _check_rows(few: Mapping[str, Few], tensors: Any, block: int, format: str) -> None:
    """Raises ModelError for what the format cannot hold, before anything is written."""
    if not few:
        raise ModelError(f"{tensors.source} has no weights of linear layers in numbers")
    for name, each in few.items():
        if not name.endswith(".weight"):
            raise ModelError(f"{tensors.source}: {name} is no name of a weight: *.weight is")
        if each.columns % block:
            raise ModelError(
                f"{tensors.source}: {name} has rows of {each.columns} numbers, and {format} has "
                f"blocks of {block}"
            )


def _write_weights(
    folder: Path, files: SafeTensorsFiles, few: Mapping[str, Few], format: str, dtype: str,
    progress: Progress | None,
) -> None:  # fmt: skip
    """All tensors, in files of a bounded size, with an index where there are several."""
    shards: list[list[str]] = []
    total = 0
    for arrays in _shards(files, few, format, dtype, progress):
        save_safetensors(folder / f"part-{len(shards)}", arrays, metadata={"format": "pt"})
        shards.append(list(arrays))
        total += sum(each.nbytes for each in arrays.values())
    if len(shards) == 1:
        (folder / "part-0").rename(folder / "model.safetensors")
        return
    weight_map: dict[str, str] = {}
    for i, names in enumerate(shards):
        part = f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
        (folder / f"part-{i}").rename(folder / part)
        weight_map |= dict.fromkeys(names, part)
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def _shards(
    files: SafeTensorsFiles, few: Mapping[str, Few], format: str, dtype: str,
    progress: Progress | None,
) -> Iterator[dict[str, Array]]:  # fmt: skip
    names = files.names()
    arrays: dict[str, Array] = {}
    size = 0
    for done, name in enumerate(names):
        if progress is not None:
            progress(done, len(names), name)
        if name in few:
            weight = few[name].numbers()
            made = LAYOUTS[format].tensors(name.removesuffix(".weight"), weight, dtype)
        else:
            made = {name: files.read(name)}
        grown = sum(each.nbytes for each in made.values())
        if arrays and size + grown > _SHARD:
            yield arrays
            arrays, size = {}, 0
        arrays |= made
        size += grown
    yield arrays
    if progress is not None:
        progress(len(names), len(names), "")


def _kept(files: SafeTensorsFiles, few: Mapping[str, Few]) -> list[str]:
    """The layers that keep their numbers; experts of a layer by the name of all."""
    matrices = [
        name.removesuffix(".weight")
        for name in files.names()
        if name.endswith(".weight") and name not in few and len(files.shape(name)) == 2
    ]
    found = {
        f"{base.partition('.experts.')[0]}.experts" if ".experts." in base else base
        for base in matrices
    }
    return sorted({*found, "lm_head"})


def _copy_others(source: str, folder: Path) -> None:
    for each in sorted(os.scandir(source), key=lambda entry: entry.name):
        if each.is_file() and not each.name.endswith(_NOT_COPIED) and each.name != "config.json":
            shutil.copyfile(each.path, folder / each.name)
        elif each.is_dir() and each.name in _FOLDERS:
            shutil.copytree(each.path, folder / each.name)


@contextlib.contextmanager
def _new_folder(target: str) -> Iterator[Path]:
    """A folder that gets the name `target` when the block ends, and is gone where it raises."""
    made = Path(f"{target}.{os.getpid()}.part")
    try:
        made.mkdir()
        yield made
        made.rename(target)
    except OSError as error:
        raise store_error(target, "written", error) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


# ---- GGUF files


def _convert_folder(
    source: str, target: str, format: str, dtype: str | None, device: Any,
    progress: Progress | None,
) -> None:  # fmt: skip
    config = with_generation_config(_config_of_numbers(os.path.join(source, "config.json")), source)
    kind = class_of(config.architecture, config.source)
    with opened_folder(source, device) as files:
        filling = Filling(kind(config), files, kind.names, dtype or config.dtype, device, None)
        _check_rows(filling.few(), files, FILE_TYPES[format][1], format)
        file = FileArrays(config, filling, format)
        metadata = file.metadata | {
            "general.name": os.path.basename(os.path.abspath(source)),
            DTYPE_KEY: dtype or config.dtype,
        }
        if has_tokenizer(source):
            metadata |= vocabulary_of(source, config)
        else:
            metadata |= end_tokens(config.eos, config.source)
        arrays = file.made(progress)
    kw.save_gguf(target, arrays, metadata | _file_type(format))


def _file_type(format: str) -> dict[str, int]:
    return {"general.file_type": FILE_TYPES[format][0], "general.quantization_version": 2}


def _write_gguf(
    source: str, target: str, format: str, dtype: str | None, device: Any,
    progress: Progress | None,
) -> None:  # fmt: skip
    with Gguf(source, device=device) as file:
        config = config_of(file, source)
        tensors = gguf_tensors(config, source, file)
        joined = [name for name in tensors.names() if name not in file]
        if joined:
            raise ModelError(
                f"{source}: {joined[0]} is kept by heads in two arrays, of which no blocks are "
                "made: llm.load(quantize=...) quantises it while loading"
            )
        module = class_of(config.architecture, config.source)(config)
        names = gguf_names(config.architecture)
        few = Filling(module, tensors, names, dtype or config.dtype, device, None).few()
        _check_rows(few, tensors, FILE_TYPES[format][1], format)
        arrays: dict[str, Any] = {}
        for done, name in enumerate(file):
            if progress is not None:
                progress(done, len(file), name)
            if name in few:
                arrays[name] = (kw.nn.quant.quantize(few[name].numbers(), format), format)
            elif file.format(name) in NUMBERS:
                arrays[name] = file[name]
            else:
                arrays[name] = (file[name], file.format(name))
        given = {DTYPE_KEY: dtype} if dtype is not None else {}
        kw.save_gguf(target, arrays, dict(file.metadata) | given | _file_type(format))
        if progress is not None:
            progress(len(file), len(file), "")
