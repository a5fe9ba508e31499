"""The numbers of a directory's model as the keys of a GGUF file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from akunu import _core
from akunu.convert.gguf_writer import KeyValue
from akunu.convert.speech_keys import encoder_keys
from akunu.embedding.sentence_files import read_sentence_files
from akunu.errors import UnsupportedModelError
from akunu.options.sampling_defaults import sampling_keys_of

_POOLINGS: Final = {"none": 0, "mean": 1, "cls": 2, "last": 3}
STREAMS: Final = 4
"""Streams of the residual of Gemma 3n, in every file."""
_POSITION_SECTIONS: Final = (11, 11, 10)
"""Pairs of a head that rotate by each of three positions, which are the same for text."""
_SAME: Final = 1e-6
"""Relative: what is nearer is the same number, rounded."""


def model_keys(
    source: _core.ModelSource, directory: Path, config: Mapping[str, Any]
) -> tuple[dict[str, KeyValue], list[str]]:
    """Return the keys, and notes on what they do not say; `config`: of config.json.

    Raises UnsupportedModelError for numbers that GGUF has no key for.
    """
    numbers = source.config
    architecture = numbers["architecture"]
    _refuse_encoders(source, config)
    written = numbers["written"]
    layers = numbers["described"]["layers"]
    keys: dict[str, KeyValue] = {
        "general.architecture": architecture,
        "general.type": "model",
        "general.name": _name(directory, config),
    }
    notes: list[str] = []

    def put(key: str, value: KeyValue) -> None:
        keys[f"{architecture}.{key}"] = value

    put("context_length", numbers["context_length"])
    put("embedding_length", numbers["dim"])
    put("block_count", len(layers))
    put("feed_forward_length", _of_layers(layers, "ffn_dim"))
    if written["always_with_experts"]:
        put("leading_dense_block_count", sum(layer["experts"] is None for layer in layers))
        put("expert_feed_forward_length", layers[0]["ffn_dim"])
        put("expert_shared_count", 0)
    if architecture == "kimi-linear":
        put("expert_gating_func", _SCORINGS["sigmoid"])
    for key, value in _experts(layers).items():
        put(key, value)
    if written["expert_step"]:
        put("interleave_moe_layer_step", 1)
    put("attention.head_count", _of_layers(layers, "n_heads"))
    put("attention.head_count_kv", _of_layers(layers, "n_kv_heads"))
    if width := max(layer["convolution_width"] for layer in layers):
        put("shortconv.l_cache", width)
    for key, value in (_scans(layers) | _delta_rules(layers, config)).items():
        put(key, value)
    if layers[0]["head_dim"] != 0:
        put("attention.key_length", layers[0]["head_dim"])
        put("attention.value_length", layers[0]["head_dim"])
    found = _latent_keys(numbers, notes) | _layer_shapes(numbers) | _streams(numbers)
    for key, value in found.items():
        put(key, value)
    epsilon = "layer_norm_epsilon" if numbers["has_layer_norm"] else "layer_norm_rms_epsilon"
    put(f"attention.{epsilon}", numbers["norm_epsilon"])
    if written["both_epsilons"]:
        put("attention.layer_norm_epsilon", numbers["norm_epsilon"])
    if numbers["is_encoder"]:
        put("attention.causal", False)
        put("pooling_type", _pooling(directory, notes))
    if any(layer["rotates"] for layer in layers):
        put("rope.dimension_count", numbers["rope_dim"])
        put("rope.freq_base", numbers["rope_theta"])
    if not numbers["rotates_as_usual"]:
        _refuse_unless_none_rotates(numbers)
        put("rope.scaling.finetuned", False)
    if numbers["query_growth"] != 0:
        put("attention.temperature_scale", numbers["query_growth"])
    for factor in ("embedding_scale", "residual_scale", "logit_scale"):
        if written["factors_in_weights"]:
            continue
        if written["factors_unsaid"]:
            if abs(numbers["described"][factor] / numbers["usual"][factor] - 1) > _SAME:
                raise UnsupportedModelError(
                    f"config.json: the {factor} is not that of {architecture}, and GGUF has no key "
                    "for it; the directory can be used unconverted"
                )
        elif numbers[factor] != 0:
            put(factor, numbers[factor])
    for key, value in _scaled_positions(numbers, notes).items():
        put(key, value)
    for key, value in _what_the_family_does_not_say(numbers).items():
        put(key, value)
        if key == "attention.scale" and not written["attention_scale"]:
            notes.append(
                f"llama.cpp does not read {architecture}.{key}, {value}, and takes another"
            )
    if numbers["audio"] is not None:
        return {**keys, **encoder_keys(numbers)}, notes
    if not numbers["is_encoder"]:
        found, more = sampling_keys_of(directory)
        keys |= found
        notes += more
    return keys, notes


def _latent_keys(numbers: Mapping[str, Any], notes: list[str]) -> dict[str, KeyValue]:
    """Latent attention's, as files have them whose keys and values are made by one matrix."""
    layers = numbers["described"]["layers"]
    first = next((layer for layer in layers if layer["latent"] is not None), None)
    if first is None:
        return {}
    latent = first["latent"]
    if numbers["interleaves_rows"]:
        raise UnsupportedModelError(
            "config.json: rope_interleave is false, and GGUF has no key for it; the directory can "
            "be used unconverted"
        )
    if abs(latent["norm_epsilon"] - numbers["norm_epsilon"]) > _SAME * numbers["norm_epsilon"]:
        notes.append(
            f"GGUF has one epsilon for all norms, {numbers['norm_epsilon']:g}; that of the "
            f"compressed queries, keys and values was {latent['norm_epsilon']:g}"
        )
    keys: dict[str, KeyValue] = {
        "attention.value_length": latent["value_dim"],
        "attention.kv_lora_rank": latent["rank"],
    }
    if latent["query_rank"] != 0:
        keys["attention.q_lora_rank"] = latent["query_rank"]
    if any(layer["delta_rule"] is not None for layer in layers):  # keys and values are apart
        keys |= {
            "attention.head_count_kv": np.array(
                [int(layer["latent"] is not None) for layer in layers], np.int32
            ),
            "attention.key_length": latent["rank"] + first["rope_dim"],
            "attention.value_length": latent["rank"],
            "attention.key_length_mla": first["head_dim"],
            "attention.value_length_mla": latent["value_dim"],
            "rope.dimension_count": first["rope_dim"],
        }
    return keys


def _layer_shapes(numbers: Mapping[str, Any]) -> dict[str, KeyValue]:
    """Gemma 4's: windowed layers have heads of another length."""
    if not numbers["has_layer_shapes"]:
        return {}
    layers = numbers["described"]["layers"]
    keys: dict[str, KeyValue] = {
        "attention.sliding_window_pattern": np.array([each["window"] != 0 for each in layers]),
        "attention.shared_kv_layers": numbers["n_shared_kv_layers"],
        "embedding_length_per_layer_input": numbers["per_layer_dim"],
    }
    for ending, has_window in (("", False), ("_swa", True)):
        lengths = {
            (each["head_dim"], each["rope_dim"])
            for each in layers
            if (each["window"] != 0) == has_window
        }
        if len(lengths) > 1:
            raise UnsupportedModelError(
                "config.json: per_layer_config has several lengths of heads, and GGUF has a key "
                "for those of windowed layers and one for all others; the directory can be used "
                "unconverted"
            )
        for head_dim, rope_dim in lengths:
            keys[f"attention.key_length{ending}"] = head_dim
            keys[f"attention.value_length{ending}"] = head_dim
            keys[f"rope.dimension_count{ending}"] = rope_dim
    return keys


def _streams(numbers: Mapping[str, Any]) -> dict[str, KeyValue]:
    """Gemma 3n's streams of the residual, and where gates are cut: minus infinity where not."""
    n = numbers["n_streams"]
    if n == 0:
        return {}
    if n != STREAMS:
        raise UnsupportedModelError(
            f"config.json: altup_num_inputs is {n}; files have {STREAMS} streams. The directory "
            f"can be used unconverted"
        )
    if not numbers["scales_streams"]:
        raise UnsupportedModelError(
            "config.json: altup_correct_scale is false, and GGUF has no key for it; the directory "
            "can be used unconverted"
        )
    cuts = [each["gate_cut"] for each in numbers["described"]["layers"]]
    return {
        "altup.num_inputs": n,
        "altup.active_idx": numbers["active_stream"],
        "activation_sparsity_scale": np.array(
            [-np.inf if cut is None else cut for cut in cuts], np.float32
        ),
    }


def _latent_yarn(numbers: Mapping[str, Any]) -> dict[str, KeyValue]:
    """How YaRN scales latent attention: a tenth of `mscale_all_dim`, as llama.cpp reads it."""
    layer = numbers["described"]["layers"][0]
    stretch = math.log(numbers["yarn"]["factor"])
    magnitude = math.sqrt(layer["attention_scale"] * math.sqrt(layer["head_dim"]))
    if abs(numbers["rope_attention_factor"] - 1) > _SAME or stretch <= 0 or magnitude - 1 < _SAME:
        raise UnsupportedModelError(
            "config.json: rope_scaling's mscale and mscale_all_dim are not the same number above "
            "0, and GGUF has no key for that; the directory can be used unconverted"
        )
    return {"rope.scaling.yarn_log_multiplier": (magnitude - 1) / stretch}


def _refuse_unless_none_rotates(numbers: Mapping[str, Any]) -> None:
    """GGUF can say that no layer of Granite rotates, and of other families nothing."""
    layers = numbers["described"]["layers"]
    if not numbers["may_not_rotate"] or any(layer["rotates"] for layer in layers):
        raise UnsupportedModelError(
            "config.json: no_rope_layers are not those that the family has, and GGUF has no key "
            "for them; the directory can be used unconverted"
        )


def _refuse_encoders(source: _core.ModelSource, config: Mapping[str, Any]) -> None:
    """Refuse what embeds or ranks in ways that are not written into files here."""
    kind = config.get("model_type")
    if source.config["is_encoder"] and kind != "bert":
        raise UnsupportedModelError(
            f"config.json: model_type is {kind!r}; akunu converts 'bert' encoders only. The "
            f"directory can be used unconverted"
        )
    behind = [each.name for each in source.tensors if each.name.startswith(("dense.", "head."))]
    behind.sort(key=lambda name: name != "head.output.weight")
    if behind:
        raise UnsupportedModelError(
            f"{behind[0]} follows the pooling, and akunu does not convert such models; the "
            f"directory can be used unconverted"
        )


def _scaled_positions(numbers: Mapping[str, Any], notes: list[str]) -> dict[str, KeyValue]:
    """What stretches rotary positions; factors of frequencies may be a tensor besides."""
    keys: dict[str, KeyValue] = {}
    attention_factor = numbers["rope_attention_factor"]
    if numbers["rope_linear_factor"] != 1:
        keys["rope.scaling.type"] = "linear"
        keys["rope.scaling.factor"] = numbers["rope_linear_factor"]
    if numbers["rope_original_context"] != 0:
        keys["rope.scaling.original_context_length"] = numbers["rope_original_context"]
    if numbers["rope_dynamic_factor"] != 1:
        notes.append(
            f"GGUF has no key for dynamic scaling; up to {numbers['context_length']} positions "
            "it changes nothing"
        )
    yarn = numbers["yarn"]
    if yarn is not None and not numbers["written"]["rope_factors"]:
        if not yarn["truncate"] and numbers["written"]["without_truncation"]:
            notes.append(
                "GGUF has no key for rope_scaling.truncate, false: frequencies between those that "
                "are stretched and those that are not differ a little"
            )
        elif not yarn["truncate"]:
            raise UnsupportedModelError(
                "config.json: rope_scaling.truncate is false; GGUF has no key for it"
            )
        keys["rope.scaling.type"] = "yarn"
        keys["rope.scaling.factor"] = yarn["factor"]
        keys["rope.scaling.original_context_length"] = yarn["original_context"]
        for name, usual in (("beta_fast", 32.0), ("beta_slow", 1.0)):
            if yarn[name] != usual:
                keys[f"rope.scaling.yarn_{name}"] = yarn[name]
        if numbers["described"]["layers"][0]["latent"] is not None:
            return keys | _latent_yarn(numbers)
        attention_factor /= yarn["attention_factor"]  # which readers multiply with
    if abs(attention_factor - 1) > _SAME:
        keys["rope.scaling.attn_factor"] = attention_factor
    return keys


def _scans(layers: list[dict[str, Any]]) -> dict[str, KeyValue]:
    """Return what a file says of layers that scan; nothing where none does."""
    scan = next((layer["scan"] for layer in layers if layer["scan"] is not None), None)
    if scan is None:
        return {}
    if scan["has_limits"]:
        raise UnsupportedModelError(
            "config.json: time_step_limit clamps steps of time, and GGUF has no key for it; the "
            "directory can be used unconverted"
        )
    return {
        "ssm.conv_kernel": scan["width"],
        "ssm.inner_size": scan["inner_dim"],
        "ssm.state_size": scan["state_dim"],
        "ssm.time_step_rank": scan["n_heads"],
        "ssm.group_count": scan["n_groups"],
    }


def _delta_rules(layers: list[dict[str, Any]], config: Mapping[str, Any]) -> dict[str, KeyValue]:
    """Return what a file says of layers with the gated delta rule; nothing where none has it."""
    recurs = [layer["delta_rule"] is not None for layer in layers]
    if not any(recurs):
        return {}
    rule = layers[recurs.index(True)]["delta_rule"]
    if rule["per_channel"]:
        if rule["n_value_heads"] != layers[0]["n_heads"]:
            raise UnsupportedModelError(
                f"config.json: layers with the delta rule have {rule['n_value_heads']} heads, "
                f"others {layers[0]['n_heads']}, and GGUF has one key for both; the directory can "
                f"be used unconverted"
            )
        return {"ssm.conv_kernel": rule["width"], "kda.head_dim": rule["key_dim"]}
    period = recurs.index(False) + 1 if False in recurs else len(layers) + 1
    if recurs != [(i + 1) % period != 0 for i in range(len(layers))]:
        raise UnsupportedModelError(
            "config.json: layer_types does not repeat with its first full_attention, and GGUF has "
            "no key for that; the directory can be used unconverted"
        )
    text = config.get("text_config", config)
    sections = (text.get("rope_parameters") or {}).get("mrope_section", _POSITION_SECTIONS)
    return {
        "ssm.conv_kernel": rule["width"],
        "ssm.inner_size": rule["n_value_heads"] * rule["value_dim"],
        "ssm.state_size": rule["key_dim"],
        "ssm.time_step_rank": rule["n_value_heads"],
        "ssm.group_count": rule["n_key_heads"],
        "full_attention_interval": period,
        "rope.dimension_sections": np.array([*sections, 0], np.int32),
    }


_SCORINGS: Final = {"softmax": 1, "sigmoid": 2, "chosen": 3}


def _experts(layers: list[dict[str, Any]]) -> dict[str, KeyValue]:
    """Return what a file says of experts; nothing where there are none."""
    first = next((i for i, layer in enumerate(layers) if layer["experts"] is not None), None)
    if first is None:
        return {}
    experts = layers[first]["experts"]
    keys: dict[str, KeyValue] = {
        "expert_count": experts["n"],
        "expert_used_count": experts["n_chosen"],
        "expert_feed_forward_length": experts["dim"],
        "expert_weights_norm": experts["normalised"],
        "expert_gating_func": _SCORINGS[experts["scoring"]],
    }
    if experts["scale"] != 1:
        keys["expert_weights_scale"] = experts["scale"]
    if experts["shared_dim"] != 0:
        keys["expert_shared_feed_forward_length"] = experts["shared_dim"]
        if experts["shared_dim"] % experts["dim"] == 0:
            keys["expert_shared_count"] = experts["shared_dim"] // experts["dim"]
    if experts["n_groups"] > 1:
        keys["expert_group_count"] = experts["n_groups"]
        keys["expert_group_used_count"] = experts["n_groups_chosen"]
    if any(layer["ffn_dim"] != 0 for layer in layers[:first]):
        keys["leading_dense_block_count"] = first
    return keys


def _of_layers(layers: list[dict[str, Any]], name: str) -> KeyValue:
    """Return one number where all layers have it, else a list."""
    values = [layer[name] for layer in layers]
    return values[0] if len(set(values)) == 1 else np.array(values, np.int32)


def _what_the_family_does_not_say(numbers: Mapping[str, Any]) -> dict[str, KeyValue]:
    """Windows, caps and scales, where readers would take other ones."""
    layers, usual = numbers["described"]["layers"], numbers["usual"]["layers"]
    keys: dict[str, KeyValue] = {}
    windowed = [layer["window"] != 0 for layer in layers]
    if any(windowed):
        keys["attention.sliding_window"] = max(layer["window"] for layer in layers)
        theta = next(layer["rope_theta"] for layer in layers if layer["window"] != 0)
        if theta != numbers["rope_theta"]:
            keys["rope.freq_base_swa"] = theta
    if windowed != [layer["window"] != 0 for layer in usual]:
        keys["attention.sliding_window_pattern"] = np.array(windowed)
    if numbers["has_soft_caps"]:
        cap = layers[0]["attention_soft_cap"]
        if cap != usual[0]["attention_soft_cap"]:
            keys["attn_logit_softcapping"] = cap
        cap = numbers["described"]["logit_soft_cap"]
        if cap != numbers["usual"]["logit_soft_cap"]:
            keys["final_logit_softcapping"] = cap
    if numbers["written"]["factors_in_weights"]:
        return keys
    attends = [layer["attention_scale"] is not None for layer in layers]
    if True not in attends:
        return keys
    first = attends.index(True)
    if layers[first]["latent"] is not None:
        return keys  # what YaRN makes of it has its own key
    scale, other = (each[first]["attention_scale"] for each in (layers, usual))
    if layers[first]["has_rope_factors"]:
        scale /= numbers["rope_attention_factor"] ** 2  # which has its own key
    if abs(scale - other) > _SAME * other:
        keys["attention.scale"] = scale
    return keys


def _pooling(directory: Path, notes: list[str]) -> int:
    files = read_sentence_files(directory)
    name = files.pooling or "mean"
    if name not in _POOLINGS or files.unknown:
        what = ", ".join(files.unknown) or f"pooling {name!r}"
        raise UnsupportedModelError(f"{directory}: GGUF has no key for {what} of modules.json")
    said = {
        "Normalize of modules.json": files.normalize,
        "max_seq_length of sentence_bert_config.json": files.most_tokens,
        "do_lower_case of sentence_bert_config.json": files.lower_case,
        "include_prompt of Pooling": not files.pools_prompt,
        "truncate_dim of config_sentence_transformers.json": files.dimensions,
        "prompts of config_sentence_transformers.json": any(files.prompts.values()),
    }
    lost = [what for what, value in said.items() if value]
    if lost:
        notes.append(f"GGUF has no key for {', '.join(lost)}")
    return _POOLINGS[name]


def _name(directory: Path, config: Mapping[str, Any]) -> str:
    """Return what to call the model: as its repository or its folder."""
    given = config.get("_name_or_path")
    if isinstance(given, str) and given:
        return given.rstrip("/").rpartition("/")[2]
    folder = directory.resolve()
    if folder.parent.name == "snapshots":  # of the hub's cache: models--owner--name
        folder = folder.parent.parent
    return folder.name.rpartition("--")[2]
