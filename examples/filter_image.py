"""Gaussian blur and Sobel edges of an image by conv2d, with torch's own convolution and the difference of the two.

    PYTHONPATH=. python examples/filter_image.py picture.png [--out folder] [--design register_blocked]

Writes blur.png and edges.png. Without a GPU kernels run in Triton's interpreter. Needs matplotlib, and no more.
"""

import argparse
from pathlib import Path

import torch
from matplotlib import image
from matplotlib.figure import Figure

import tritonkernels as tk

SOBEL = torch.tensor([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])  # its transpose sees the other direction


def gaussian(taps, sigma):
    """(taps, taps) weights that add up to 1."""
    line = torch.exp(-((torch.arange(taps) - (taps - 1) / 2) ** 2) / (2 * sigma**2))
    weights = torch.outer(line, line)
    return weights / weights.sum()


def blur(convolve, picture):
    """Every colour by itself: a depthwise convolution."""
    channels = picture.shape[0]
    weight = gaussian(7, 1.5).expand(channels, 1, 7, 7).contiguous().to(picture.device)
    return convolve(picture, weight, padding="same", groups=channels)


def edges(convolve, picture):
    """The length of the gradient of the brightness: one channel in, two out."""
    weight = torch.stack((SOBEL, SOBEL.T))[:, None].to(picture.device)
    along_w, along_h = convolve(picture.mean(0, keepdim=True), weight, padding="same")
    return torch.hypot(along_w, along_h)[None]


def read(path):
    """(C, H, W) float32 from 0 to 1, without a fourth, transparent channel."""
    pixels = torch.tensor(image.imread(path))
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels[..., :3]
    return pixels.float().movedim(-1, 0).contiguous() / (1 if pixels.dtype.is_floating_point else 255)


def draw(path, pictures):
    """Side by side, under their titles; one channel in grey."""
    figure = Figure(figsize=(5 * len(pictures), 5), layout="constrained")
    for axes, (title, picture) in zip(figure.subplots(1, len(pictures)), pictures.items()):
        shown = picture / picture.max().clamp(min=1e-30)
        axes.imshow(shown.cpu().movedim(0, -1).squeeze(-1), cmap="gray")
        axes.set_title(title)
        axes.axis("off")
    figure.savefig(path)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", type=Path)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--design", help='one of tritonkernels.designs("conv2d"); default: chosen')
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    torch.backends.cudnn.allow_tf32 = False  # torch's default on a GPU, where ours is IEEE
    picture = read(options.picture).to("cuda" if torch.cuda.is_available() else "cpu")
    for name, filtered in (("blur", blur), ("edges", edges)):
        ours = filtered(lambda *args, **kwargs: tk.conv2d(*args, **kwargs, design=options.design), picture)
        torchs = filtered(torch.nn.functional.conv2d, picture)
        difference = (ours - torchs).abs()
        largest = difference.max().item()
        titles = ("the picture", "tritonkernels", "torch", f"difference, up to {largest:.1e}")
        draw(options.out / f"{name}.png", dict(zip(titles, (picture, ours, torchs, difference))))
        print(f"{options.out / name}.png: {name}, at most {largest:.1e} from torch's")


if __name__ == "__main__":
    main()
