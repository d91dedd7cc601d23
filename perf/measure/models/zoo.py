"""The models: those of timm and transformers that people run, with random weights, and inputs as large as they have them.

Each has a small variant of the same layers, for a machine without a GPU.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

CLASSES = {False: 1000, True: 10}  # this and the next two: of the model, of its small variant
PIXELS = {False: 224, True: 64}
IMAGES = {False: 64, True: 4}
LLAMA = {
    False: {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8},
    True: {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2},
}  # the full sizes are those of Llama-3-8B


@dataclass(frozen=True)
class Model:
    """build(small) is the module in float32 on the CPU, inputs(small) its arguments: a tuple, or a dict by name."""

    title: str
    package: str  # that brings it
    build: Callable[[bool], torch.nn.Module]
    inputs: Callable[[bool], tuple[torch.Tensor, ...] | dict[str, torch.Tensor]]
    size: str  # of the inputs
    dtypes: tuple[str, ...] = ("bf16",)
    channels_last: bool = False
    trained: bool = True  # a training step is measured, too


def of_timm(name, **reduced):
    """build() of a model of timm; the small variant has the reduced sizes."""

    def build(small):
        import timm

        return timm.create_model(name, pretrained=False, num_classes=CLASSES[small], **(reduced if small else {}))

    return build


def images(small):
    return (torch.randn(IMAGES[small], 3, PIXELS[small], PIXELS[small]),)


def bert(small):
    from transformers import BertConfig, BertModel

    reduced = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 96, "vocab_size": 100}
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}  # the float64 run would drop other values
    return BertModel(BertConfig(**still, **(reduced if small else {})), add_pooling_layer=False)


def whisper(small):
    from transformers import WhisperConfig, WhisperModel

    width = {"d_model": 64, "encoder_attention_heads": 2, "encoder_ffn_dim": 96, "max_source_positions": 20}
    whole = {"d_model": 768, "encoder_attention_heads": 12, "encoder_ffn_dim": 3072}  # of Whisper-small
    unused = {"decoder_layers": 1, "decoder_attention_heads": 2}
    config = WhisperConfig(num_mel_bins=80, encoder_layers=1 if small else 12, **unused, **(width if small else whole))
    return WhisperModel(config).get_encoder()


def llama(small):
    from transformers import LlamaConfig, LlamaForCausalLM

    vocabulary = 100 if small else 32000
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=1 if small else 4, vocab_size=vocabulary, **LLAMA[small]))


def tokens(sequences, length, small_length=16):
    """inputs() of token numbers.

    The cache of keys and values is left on, as it is by default: without one transformers asks the GPU whether sequences are
    packed, which no graph can capture.
    """

    def draw(small):
        shape = (min(sequences, 2), small_length) if small else (sequences, length)
        return {"input_ids": torch.randint(100, shape)}

    return draw


def _seconds_of_sound(small):
    return {"input_features": torch.randn(1, 80, 40) if small else torch.randn(4, 80, 3000)}


def _of_images(title, build, **options):
    return Model(title, "timm", build, images, "64 images", **options)


WHOLE, CONVOLUTIONAL = ("bf16", "fp32", "tf32"), {"channels_last": True}
MODELS: dict[str, Model] = {
    "resnet50": _of_images(
        "ResNet-50",
        of_timm("resnet50", layers=(1, 1, 1, 1), channels=(8, 8, 16, 16), stem_width=8),
        dtypes=WHOLE,
        **CONVOLUTIONAL,
    ),
    "convnext": _of_images("ConvNeXt-T", of_timm("convnext_tiny", depths=(1, 1, 1, 1), dims=(8, 16, 16, 32)), **CONVOLUTIONAL),
    "efficientnet": _of_images("EfficientNet-B0", of_timm("efficientnet_b0"), **CONVOLUTIONAL),
    "regnet": _of_images("RegNetY-3.2", of_timm("regnety_032"), **CONVOLUTIONAL),
    "vit": _of_images("ViT-S", of_timm("vit_small_patch16_224", img_size=64, depth=1, embed_dim=64, num_heads=2), dtypes=WHOLE),
    "bert": Model("BERT", "transformers", bert, tokens(16, 512), "16 x 512 tokens"),
    "whisper": Model("Whisper's encoder", "transformers", whisper, _seconds_of_sound, "4 x 30 s"),
    "llama": Model("Llama, 4 layers", "transformers", llama, tokens(1, 2048), "2048 tokens"),
    "llama-16": Model("Llama, 4 layers", "transformers", llama, tokens(16, 1, 1), "16 x 1 token", trained=False),
    "llama-1": Model("Llama, 4 layers", "transformers", llama, tokens(1, 1, 1), "1 token", trained=False),
}


def missing(model, dtype, on_gpu):
    """Why the model cannot be measured here, or None."""
    if dtype == "tf32" and not on_gpu:
        return "torch has no TF32 without a GPU"
    if importlib.util.find_spec(model.package) is None:
        return f"{model.package} is not installed: pip install 'tritonkernels[models]'"
    return None


def made(model, dtype, device, small):
    """(the module, its inputs) on the device; always the same values."""
    torch.manual_seed(0)
    module = settled(model.build(small)).to(device, dtype)
    inputs = _mapped(model.inputs(small), lambda t: t.to(device, dtype) if t.is_floating_point() else t.to(device))
    if model.channels_last:
        module = module.to(memory_format=torch.channels_last)
        inputs = _mapped(inputs, lambda t: t.contiguous(memory_format=torch.channels_last) if t.ndim == 4 else t)
    return module, inputs


def settled(module):
    """The module, changed so that every call computes the same, and all layers count.

    Scales that begin as zero, as of the last normalisation in a block, would leave whole branches out of results and of
    gradients. Running means do not run.
    """
    for name, parameter in module.named_parameters():
        if parameter.ndim == 1 and not name.endswith("bias") and parameter.abs().max() < 1e-3:
            torch.nn.init.constant_(parameter, 0.5)
    for each in module.modules():
        if isinstance(each, torch.nn.modules.batchnorm._BatchNorm):
            each.momentum = 0.0
    return module


def call(module, inputs) -> torch.Tensor:
    """The module's first result."""
    result: Any = module(**inputs) if isinstance(inputs, dict) else module(*inputs)
    return result if isinstance(result, torch.Tensor) else result[0]


def cast(inputs, dtype):
    """The inputs in another floating-point type."""
    return _mapped(inputs, lambda t: t.to(dtype) if t.is_floating_point() else t)


def on(inputs, device):
    """The inputs on another device."""
    return _mapped(inputs, lambda t: t.to(device))


def _mapped(inputs, change):
    if isinstance(inputs, dict):
        return {name: change(t) if isinstance(t, torch.Tensor) else t for name, t in inputs.items()}
    return tuple(map(change, inputs))
