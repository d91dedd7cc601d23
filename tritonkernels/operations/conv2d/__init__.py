"""conv2d, and what its gradients share with it."""
