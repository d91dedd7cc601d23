"""What an operation is, for both packages: arguments checked, problems, counts of work, and what it reduces to. No kernels."""
