"""The gradient of a convolution with respect to its bias."""
